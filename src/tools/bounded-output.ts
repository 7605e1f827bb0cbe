import { StringDecoder } from 'node:string_decoder'

/** The beginning and the end of an output, however long it is, in little memory. */
export class BoundedOutput {
  readonly #halfBytes: number
  #head = Buffer.alloc(0)
  #tail = Buffer.alloc(0)
  #total = 0

  constructor(maxBytes: number) {
    this.#halfBytes = Math.floor(maxBytes / 2)
  }

  get totalBytes(): number {
    return this.#total
  }

  add(chunk: Buffer): void {
    this.#total += chunk.length
    const room = this.#halfBytes - this.#head.length
    if (room > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, room)])
    if (chunk.length <= room) return
    const rest = chunk.subarray(Math.max(0, room))
    // A copy, so that the end of a large chunk does not keep all of it alive.
    this.#tail = Buffer.from(Buffer.concat([this.#tail, rest]).subarray(-this.#halfBytes))
  }

  text(): string {
    const left = this.#total - this.#head.length - this.#tail.length
    if (left === 0) return Buffer.concat([this.#head, this.#tail]).toString('utf8')
    // Characters that the cut went through are left out with the rest.
    const head = new StringDecoder('utf8').write(this.#head)
    const start = this.#tail.findIndex(byte => (byte & 0xc0) !== 0x80)
    const tail = this.#tail.subarray(Math.max(0, start)).toString('utf8')
    return `${head}… [shortened by Lango: ${left} of ${this.#total} bytes left out] …${tail}`
  }
}
