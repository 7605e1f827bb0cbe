const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * Nine letters and digits for any text: the one shape that every provider accepts as a call id. Two
 * independent 32-bit hashes make about 53 bits, so two ids of one history never meet in practice.
 */
export function shortHash(text: string): string {
  let low = 0x811c9dc5
  let high = 0x9e3779b9
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    low = Math.imul(low ^ unit, 0x01000193)
    high = Math.imul(high ^ unit, 0x85ebca6b) ^ (high >>> 13)
  }
  low = finish(low ^ text.length)
  high = finish(high + low)
  return letters(low, 5) + letters(high, 4)
}

function finish(hash: number): number {
  const first = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  const second = Math.imul(first ^ (first >>> 13), 0xc2b2ae35)
  return (second ^ (second >>> 16)) >>> 0
}

function letters(hash: number, count: number): string {
  let rest = hash
  let text = ''
  for (let place = 0; place < count; place++) {
    text += ALPHABET[rest % ALPHABET.length]
    rest = Math.floor(rest / ALPHABET.length)
  }
  return text
}
