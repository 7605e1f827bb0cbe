/**
 * Objects that Python has pickled, as plain data. A pickle is a program: it names classes and calls them. Nothing of it is
 * called here, and nothing is imported. An object is the fields that it has; a call of a class is the values that were
 * given to it. An instruction that is not listed ends the reading with an error.
 */

import { isRecord } from '../base/is-record.js'
import { AgentError } from '../errors.js'

export function readPickle(bytes: Uint8Array): unknown {
  return toPlain(new Unpickler(bytes).run(), { left: MOST_VALUES, above: new Set() })
}

/** A value may stand in a pickle once and be named many times: what it is written out to has a limit. */
const MOST_VALUES = 200_000
const DEEPEST = 200

/** What a pickle builds. Lists and dictionaries may be changed after they were named, so they are kept as such. */
class PythonList {
  readonly items: unknown[] = []
}
class PythonDict {
  readonly entries: [unknown, unknown][] = []
}
class PythonClass {
  constructor(readonly name: string) {}
}
class PythonObject {
  readonly list = new PythonList()
  readonly dict = new PythonDict()
  state: unknown
  constructor(
    readonly type: unknown,
    readonly given: readonly unknown[],
  ) {}
}

const MARK = Symbol('mark')

class Unpickler {
  readonly #bytes: Buffer
  #at = 0
  #stack: unknown[] = []
  readonly #memo = new Map<number, unknown>()

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  run(): unknown {
    for (;;) {
      const code = this.#number(1)
      if (code === STOP) return this.#pop()
      const act = ACTS.get(code)
      if (!act) throw malformed(`it has the instruction 0x${code.toString(16)}, which is not known`)
      act(this.#machine)
    }
  }

  readonly #machine: Machine = {
    push: value => void this.#stack.push(value),
    pop: () => this.#pop(),
    top: () => this.#stack.at(-1),
    toMark: () => this.#toMark(),
    number: bytes => this.#number(bytes),
    take: bytes => this.#take(bytes),
    line: () => this.#line(),
    remember: at => void this.#memo.set(at ?? this.#memo.size, this.#stack.at(-1)),
    recall: at => {
      if (!this.#memo.has(at)) throw malformed('it names a value that it does not have')
      this.#stack.push(this.#memo.get(at))
    },
  }

  #pop(): unknown {
    if (this.#stack.length === 0) throw malformed('it ends too early')
    return this.#stack.pop()
  }

  #toMark(): unknown[] {
    const at = this.#stack.lastIndexOf(MARK)
    if (at === -1) throw malformed('it ends a group that it did not begin')
    return this.#stack.splice(at).slice(1)
  }

  #take(length: number): Buffer {
    if (!(length >= 0) || this.#at + length > this.#bytes.length) throw malformed('it ends too early')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  #number(bytes: number): number {
    const taken = this.#take(bytes)
    return bytes === 8 ? Number(taken.readBigUInt64LE()) : taken.readUIntLE(0, bytes)
  }

  #line(): string {
    const end = this.#bytes.indexOf(0x0a, this.#at)
    if (end === -1) throw malformed('it ends too early')
    const line = this.#bytes.toString('utf8', this.#at, end)
    this.#at = end + 1
    return line
  }
}

interface Machine {
  push(value: unknown): void
  pop(): unknown
  top(): unknown
  /** The values since the last mark, which are taken away with it. */
  toMark(): unknown[]
  number(bytes: number): number
  take(bytes: number): Buffer
  line(): string
  remember(at?: number): void
  recall(at: number): void
}

type Act = (machine: Machine) => void

const STOP = code('.')

/** The binary instructions: those of the protocols 3 to 5, which every Python 3 writes. */
const ACTS: ReadonlyMap<number, Act> = new Map<number, Act>([
  [0x80, machine => void machine.number(1)],
  [0x95, machine => void machine.number(8)],
  [code('('), ({ push }) => push(MARK)],
  [code('0'), ({ pop }) => void pop()],
  [code('1'), ({ toMark }) => void toMark()],
  [code('2'), ({ push, top }) => push(top())],
  [code('N'), ({ push }) => push(null)],
  [0x88, ({ push }) => push(true)],
  [0x89, ({ push }) => push(false)],
  [code('J'), ({ push, take }) => push(take(4).readInt32LE())],
  [code('K'), ({ push, number }) => push(number(1))],
  [code('M'), ({ push, number }) => push(number(2))],
  [0x8a, ({ push, take, number }) => push(longOf(take(number(1))))],
  [0x8b, ({ push, take, number }) => push(longOf(take(number(4))))],
  [code('G'), ({ push, take }) => push(take(8).readDoubleBE())],
  ...(
    [
      [0x8c, 1],
      [code('X'), 4],
      [0x8d, 8],
    ] as const
  ).map(([at, size]): [number, Act] => [
    at,
    ({ push, take, number }) => push(take(number(size)).toString('utf8')),
  ]),
  ...(
    [
      [code('C'), 1],
      [code('B'), 4],
      [0x8e, 8],
      [0x96, 8],
    ] as const
  ).map(([at, size]): [number, Act] => [
    at,
    ({ push, take, number }) => push(Buffer.from(take(number(size)))),
  ]),
  [code(']'), ({ push }) => push(new PythonList())],
  [code('l'), ({ push, toMark }) => push(listOf(toMark()))],
  [code('a'), ({ pop, top }) => addItems([pop()], top())],
  [code('e'), ({ toMark, top }) => addItems(toMark(), top())],
  [code(')'), ({ push }) => push([])],
  [code('t'), ({ push, toMark }) => push(toMark())],
  [0x85, ({ push, pop }) => push([pop()])],
  [0x86, ({ push, pop }) => push([pop(), pop()].reverse())],
  [0x87, ({ push, pop }) => push([pop(), pop(), pop()].reverse())],
  [code('}'), ({ push }) => push(new PythonDict())],
  [code('d'), ({ push, toMark }) => push(addEntries(toMark(), new PythonDict()))],
  [code('s'), ({ pop, top }) => void addEntries([pop(), pop()].reverse(), top())],
  [code('u'), ({ toMark, top }) => void addEntries(toMark(), top())],
  [0x8f, ({ push }) => push(new PythonList())],
  [0x90, ({ toMark, top }) => addItems(toMark(), top())],
  [0x91, ({ push, toMark }) => push(listOf(toMark()))],
  [0x94, ({ remember }) => remember()],
  [code('q'), ({ remember, number }) => remember(number(1))],
  [code('r'), ({ remember, number }) => remember(number(4))],
  [code('h'), ({ recall, number }) => recall(number(1))],
  [code('j'), ({ recall, number }) => recall(number(4))],
  [code('c'), ({ push, line }) => push(new PythonClass(`${line()}.${line()}`))],
  [0x93, ({ push, pop }) => push(new PythonClass([pop(), pop()].reverse().map(String).join('.')))],
  [code('R'), ({ push, pop }) => push(made(pop(), pop()))],
  [0x81, ({ push, pop }) => push(made(pop(), pop()))],
  [0x92, ({ push, pop }) => push(madeByName(pop(), pop(), pop()))],
  [code('b'), ({ pop, top }) => setState(pop(), top())],
])

function code(character: string): number {
  return character.charCodeAt(0)
}

function longOf(bytes: Buffer): bigint {
  const hex = Buffer.from(bytes).reverse().toString('hex')
  return hex === '' ? 0n : BigInt.asIntN(bytes.length * 8, BigInt(`0x${hex}`))
}

function listOf(items: readonly unknown[]): PythonList {
  const list = new PythonList()
  addItems(items, list)
  return list
}

function addItems(items: readonly unknown[], to: unknown): void {
  const list = to instanceof PythonObject ? to.list : to
  if (!(list instanceof PythonList)) throw malformed('it adds an item to what is no list')
  for (const item of items) list.items.push(item)
}

function addEntries(pairs: readonly unknown[], to: unknown): unknown {
  const dict = to instanceof PythonObject ? to.dict : to
  if (!(dict instanceof PythonDict)) throw malformed('it sets a key of what is no dictionary')
  for (let index = 0; index < pairs.length; index += 2) dict.entries.push([pairs[index], pairs[index + 1]])
  return to
}

function made(given: unknown, type: unknown): PythonObject {
  return new PythonObject(type, Array.isArray(given) ? given : [given])
}

function madeByName(names: unknown, given: unknown, type: unknown): PythonObject {
  const object = made(given, type)
  if (names instanceof PythonDict) object.state = names
  return object
}

function setState(state: unknown, object: unknown): void {
  if (!(object instanceof PythonObject)) throw malformed('it sets fields of what is no object')
  object.state = state
}

interface Writing {
  left: number
  /** The values that this one is inside of. */
  above: Set<unknown>
}

function toPlain(value: unknown, writing: Writing): unknown {
  writing.left -= 1
  if (writing.left < 0) throw malformed('it is too large')
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (writing.above.has(value)) throw malformed('a value is inside itself')
  if (writing.above.size > DEEPEST) throw malformed('it is nested too deeply')
  writing.above.add(value)
  const plain = plainOf(value, item => toPlain(item, writing))
  writing.above.delete(value)
  return plain
}

type Inside = (value: unknown) => unknown

function plainOf(value: object, inside: Inside): unknown {
  if (Array.isArray(value)) return value.map(inside)
  if (value instanceof PythonList) return value.items.map(inside)
  if (value instanceof PythonDict) return recordOf(value, inside)
  if (value instanceof PythonClass) return value.name
  return value instanceof PythonObject ? objectOf(value, inside) : undefined
}

function recordOf({ entries }: PythonDict, inside: Inside): Record<string, unknown> {
  return Object.fromEntries(entries.map(([key, item]) => [String(inside(key)), inside(item)]))
}

function objectOf(object: PythonObject, inside: Inside): unknown {
  const type = object.type instanceof PythonClass ? object.type.name : ''
  const time = type.startsWith('datetime.') ? timeOf(type, object.given) : undefined
  if (time !== undefined) return time
  const fields = { ...fieldsOf(object.state, inside), ...recordOf(object.dict, inside) }
  if (Object.keys(fields).length > 0) return fields
  if (object.list.items.length > 0) return inside(object.list)
  // It was made with a class, which is no value.
  if (type === 'collections.defaultdict') return {}
  // An enumeration, a decimal number: what it was made of. `getattr` is the name of a member.
  const given = type.endsWith('.getattr') ? object.given.slice(1) : object.given
  if (given.length === 0) return EMPTY_LISTS.has(type) ? [] : {}
  return given.length === 1 ? inside(given[0]) : inside(given)
}

const EMPTY_LISTS = new Set(['builtins.set', 'builtins.frozenset', 'builtins.list', 'collections.deque'])

/** Of Pydantic the fields are one below, beside what belongs to the class; of slots they are the second of two. */
function fieldsOf(state: unknown, inside: Inside): Record<string, unknown> {
  if (Array.isArray(state)) {
    return Object.fromEntries(state.flatMap(item => Object.entries(fieldsOf(item, inside))))
  }
  if (!(state instanceof PythonDict)) return {}
  const fields = recordOf(state, inside)
  if (!isRecord(fields.__dict__)) return fields
  const more = fields.__pydantic_extra__
  return { ...fields.__dict__, ...(isRecord(more) ? more : {}) }
}

/** A date is four bytes, a time of a day has six more. */
function timeOf(type: string, [bytes]: readonly unknown[]): string | undefined {
  if (!(bytes instanceof Uint8Array) || (type !== 'datetime.date' && type !== 'datetime.datetime'))
    return undefined
  if (bytes.length !== (type === 'datetime.date' ? 4 : 10)) return undefined
  const [high = 0, low = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ...micro] = bytes
  const two = (number: number) => String(number).padStart(2, '0')
  const date = `${String(high * 256 + low).padStart(4, '0')}-${two(month & 0x7f)}-${two(day)}`
  if (type === 'datetime.date') return date
  const micros = micro.reduce((sum, byte) => sum * 256 + byte, 0)
  const end = micros === 0 ? '' : `.${String(micros).padStart(6, '0')}`
  return `${date}T${two(hour)}:${two(minute)}:${two(second)}${end}`
}

function malformed(why: string): AgentError {
  return new AgentError('invalid-argument', `The pickled object cannot be read: ${why}.`)
}
