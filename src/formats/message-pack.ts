/**
 * MessagePack as LangGraph for Python writes it. Objects of Python are extensions: their class and what it takes to make
 * them again. Only the latter is returned, so that a message is the fields that it has.
 */

import { AgentError } from '../errors.js'

export function readMessagePack(bytes: Uint8Array): unknown {
  return new Unpacker(bytes).value(0)
}

/** A value inside a value, inside a value: nobody nests deeper. */
const DEEPEST = 500

class Unpacker {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  value(depth: number): unknown {
    if (depth > DEEPEST) throw malformed('it is nested too deeply')
    const code = this.#number(1)
    if (code < 0x80) return code
    if (code < 0x90) return this.#map(code & 0x0f, depth)
    if (code < 0xa0) return this.#list(code & 0x0f, depth)
    if (code < 0xc0) return this.#text(code & 0x1f)
    if (code >= 0xe0) return code - 0x100
    return this.#long(code, depth)
  }

  #long(code: number, depth: number): unknown {
    switch (code) {
      case 0xc0:
        return null
      case 0xc1:
        throw malformed('it has an unknown kind of value')
      case 0xc2:
      case 0xc3:
        return code === 0xc3
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return Buffer.from(this.#take(this.#number(2 ** (code - 0xc4)))).toString('base64')
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return this.#extension(this.#number(2 ** (code - 0xc7)), depth)
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return this.#extension(2 ** (code - 0xd4), depth)
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#text(this.#number(2 ** (code - 0xd9)))
      case 0xdc:
      case 0xdd:
        return this.#list(this.#number(code === 0xdc ? 2 : 4), depth)
      case 0xde:
      case 0xdf:
        return this.#map(this.#number(code === 0xde ? 2 : 4), depth)
      default:
        return this.#numeral(code)
    }
  }

  #numeral(code: number): number | string {
    const size = code === 0xca ? 4 : code === 0xcb ? 8 : code < 0xd0 ? 2 ** (code - 0xcc) : 2 ** (code - 0xd0)
    const at = this.#move(size)
    if (code === 0xca) return this.#view.getFloat32(at)
    if (code === 0xcb) return this.#view.getFloat64(at)
    if (size === 8) return exact(code === 0xcf ? this.#view.getBigUint64(at) : this.#view.getBigInt64(at))
    if (code === 0xcc) return this.#view.getUint8(at)
    if (code === 0xcd) return this.#view.getUint16(at)
    if (code === 0xce) return this.#view.getUint32(at)
    if (code === 0xd0) return this.#view.getInt8(at)
    if (code === 0xd1) return this.#view.getInt16(at)
    return this.#view.getInt32(at)
  }

  /** `[module, class, arguments, …]`, packed again; anything else is returned as base64. */
  #extension(length: number, depth: number): unknown {
    const kind = this.#number(1)
    const bytes = this.#take(length)
    if (kind > LAST_CONSTRUCTOR && kind !== SNAPSHOT) return Buffer.from(bytes).toString('base64')
    const inside = new Unpacker(bytes).value(depth + 1)
    return Array.isArray(inside) && kind !== SNAPSHOT ? inside[2] : inside
  }

  #map(count: number, depth: number): Record<string, unknown> {
    const fields: [string, unknown][] = []
    for (let index = 0; index < count; index++) {
      const name = this.value(depth + 1)
      fields.push([String(name), this.value(depth + 1)])
    }
    return Object.fromEntries(fields)
  }

  #list(count: number, depth: number): unknown[] {
    const values: unknown[] = []
    for (let index = 0; index < count; index++) values.push(this.value(depth + 1))
    return values
  }

  #text(length: number): string {
    return Buffer.from(this.#take(length)).toString('utf8')
  }

  #number(size: number): number {
    const at = this.#move(size)
    if (size === 1) return this.#view.getUint8(at)
    return size === 2 ? this.#view.getUint16(at) : this.#view.getUint32(at)
  }

  #take(length: number): Uint8Array {
    const at = this.#move(length)
    return this.#bytes.subarray(at, at + length)
  }

  #move(size: number): number {
    const at = this.#at
    if (at + size > this.#bytes.length) throw malformed('it ends too early')
    this.#at = at + size
    return at
  }
}

/** LangGraph's extensions for objects: by one argument, by several, by names, by a method, of Pydantic 1 and 2. */
const LAST_CONSTRUCTOR = 5
/** A value whose changes are stored one by one, as it is at this checkpoint. */
const SNAPSHOT = 7

/** A number that JavaScript cannot hold is a text. */
function exact(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value.toString()
}

function malformed(why: string): AgentError {
  return new AgentError('invalid-argument', `A checkpoint cannot be read: ${why}.`)
}
