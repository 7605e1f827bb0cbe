/** The server processes. One that ended is started again, until the fleet is closed. Each is a slot with a number. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createWriteStream, type WriteStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { builtFile } from '../test/support/built-lango.js'
import type { Random } from './random.js'
import type { ServerSettings } from './server-process.js'

interface Slot {
  number: number
  child?: ChildProcess
  url?: string
  /** Why the process is expected to end. */
  ending?: 'kill' | 'term'
  isFrozen: boolean
  errors: string
}

export interface FleetOptions {
  processes: number
  settings: Omit<ServerSettings, 'slot'>
  logFile: string
  /** A server that ended by itself. */
  crashed(detail: string): void
  /** Whether a server may fail to start now, because its database is gone. */
  mayFailToStart(): boolean
}

const START_MS = 300_000
const END_MS = 30_000
const TAIL = 4000

export class Fleet {
  readonly #options: FleetOptions
  readonly #slots: Slot[]
  readonly #log: WriteStream
  #isClosing = false
  #watchers: Promise<void>[] = []

  constructor(options: FleetOptions) {
    this.#options = options
    this.#log = createWriteStream(options.logFile)
    this.#slots = Array.from({ length: options.processes }, (_, number) => ({
      number,
      isFrozen: false,
      errors: '',
    }))
    process.once('exit', this.#killAll)
  }

  /** Starts one process in each of the slots and resolves when all of them listen. */
  async start(count = this.#slots.length): Promise<void> {
    this.#isClosing = false
    const slots = this.#slots.slice(0, count)
    this.#watchers = slots.map(slot => this.#keepRunning(slot))
    await this.#until(() => slots.every(({ url }) => url !== undefined), START_MS)
  }

  /** Some address, also one of a process that does not respond. */
  address(random: Random): { slot: number; url: string } | undefined {
    const slot = random.pick(this.#slots.filter(({ url }) => url !== undefined))
    return slot?.url === undefined ? undefined : { slot: slot.number, url: slot.url }
  }

  /** The slots whose process works. */
  working(): number[] {
    return this.#slots.filter(slot => isWorking(slot)).map(({ number }) => number)
  }

  /** `false` when the process is not there to be disturbed. */
  async kill(number: number): Promise<boolean> {
    return this.#end(number, 'kill')
  }

  /** A process that does not end by itself is reported and killed. */
  async terminate(number: number): Promise<boolean> {
    return this.#end(number, 'term')
  }

  /** Freezes the process; it continues after that time. */
  async freeze(number: number, ms: number): Promise<boolean> {
    const slot = this.#slots[number]
    const child = slot?.child
    if (!slot || !child || !isWorking(slot)) return false
    slot.isFrozen = true
    child.kill('SIGSTOP')
    setTimeout(() => {
      child.kill('SIGCONT')
      if (slot.child === child) slot.isFrozen = false
    }, ms).unref()
    return true
  }

  /** Kills every process and waits for their ends. */
  async stop(): Promise<void> {
    this.#isClosing = true
    this.#killAll()
    await Promise.all(this.#watchers)
  }

  async close(): Promise<void> {
    await this.stop()
    process.off('exit', this.#killAll)
    await new Promise<void>(resolve => this.#log.end(resolve))
  }

  readonly #killAll = () => {
    for (const slot of this.#slots) {
      slot.ending = 'kill'
      slot.child?.kill('SIGKILL')
    }
  }

  async #end(number: number, how: 'kill' | 'term'): Promise<boolean> {
    const slot = this.#slots[number]
    const child = slot?.child
    if (!slot || !child || !isWorking(slot)) return false
    slot.ending = how
    const ended = endOf(child)
    child.kill(how === 'kill' ? 'SIGKILL' : 'SIGTERM')
    const isOver = await Promise.race([ended.then(() => true), sleep(END_MS, false, { ref: false })])
    if (!isOver) {
      this.#options.crashed(`a server did not end within ${END_MS} ms after SIGTERM`)
      child.kill('SIGKILL')
      await ended
    }
    return true
  }

  async #keepRunning(slot: Slot): Promise<void> {
    while (!this.#isClosing) {
      const { child, wasReady } = await this.#runOnce(slot)
      const isFault = child.exitCode !== 0 && slot.ending !== 'kill'
      const isUnasked = slot.ending === undefined
      const isExcused = !wasReady && this.#options.mayFailToStart()
      if ((isFault || isUnasked) && !isExcused && !this.#isClosing) {
        const how = child.signalCode ?? `exit code ${child.exitCode}`
        this.#options.crashed(`a server ended with ${how}: ${slot.errors.slice(-TAIL)}`)
      }
      if (isUnasked) await sleep(200)
    }
  }

  async #runOnce(slot: Slot): Promise<{ child: ChildProcess; wasReady: boolean }> {
    const settings: ServerSettings = { ...this.#options.settings, slot: slot.number }
    const child = spawn(
      process.execPath,
      [builtFile('chaos', 'server-process.ts'), JSON.stringify(settings)],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    const ended = endOf(child)
    delete slot.ending
    Object.assign(slot, { child, isFrozen: false, errors: '' })
    child.stderr.on('data', chunk => {
      slot.errors = `${slot.errors}${chunk}`.slice(-TAIL)
      this.#log.write(chunk)
    })
    createInterface({ input: child.stdout }).once('line', line => {
      slot.url = line
    })
    await ended
    const wasReady = slot.url !== undefined
    delete slot.url
    delete slot.child
    return { child, wasReady }
  }

  async #until(isDone: () => boolean, withinMs: number): Promise<void> {
    const deadline = Date.now() + withinMs
    while (!isDone() && Date.now() < deadline) await sleep(20)
    if (!isDone()) this.#options.crashed(`the servers did not start within ${withinMs} ms`)
  }
}

function isWorking({ url, ending, isFrozen }: Slot): boolean {
  return url !== undefined && ending === undefined && !isFrozen
}

function endOf(child: ChildProcess): Promise<void> {
  return new Promise(resolve => {
    child.once('error', () => resolve())
    child.once('close', () => resolve())
  })
}
