/** The most similar known name, or `undefined` when none is close. Case and hyphens are ignored. */
export function suggest(name: string, known: readonly string[]): string | undefined {
  const wanted = plain(name)
  let best: string | undefined
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(wanted, plain(candidate))
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** The message for an unknown key. */
export function unknownKeyText(key: string, known: readonly string[]): string {
  const near = suggest(key, known)
  const fix = near === undefined ? `Known keys: ${known.join(', ')}.` : `Did you mean \`${near}\`?`
  return `\`${key}\` is not a known key. ${fix}`
}

function plain(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[-_\s]/g, '')
    .slice(0, 64)
}

/** Letters to insert, remove or replace, two swapped neighbours counting as one. */
function editDistance(left: string, right: string): number {
  let before: number[] = []
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column)
  for (let row = 1; row <= left.length; row++) {
    const current = [row]
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1]
      const replaced = at(previous, column - 1) + (same ? 0 : 1)
      let cost = Math.min(replaced, at(previous, column) + 1, at(current, column - 1) + 1)
      const swapped =
        row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]
      if (swapped) cost = Math.min(cost, at(before, column - 2) + 1)
      current.push(cost)
    }
    before = previous
    previous = current
  }
  return at(previous, right.length)
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY
}
