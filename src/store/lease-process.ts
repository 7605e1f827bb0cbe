/**
 * The process that holds a lease, as it is stored with the lease: `host boot-id pid-namespace pid start-time`. A process
 * of the same host, boot and PID namespace can be looked up, so that the lease of one that was killed is free at once
 * instead of when it expires. Whatever cannot be decided counts as alive: then the lease expires as usual.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** This process. `holder` and `machine` are empty where processes cannot be distinguished. */
export interface LeaseProcess {
  holder: string
  /** How the holders begin that can be looked up from here. */
  machine: string
}

let own: LeaseProcess | undefined

export function thisProcess(): LeaseProcess {
  own ??= identify()
  return own
}

function identify(): LeaseProcess {
  const place = placeOf()
  const start = startTime(process.pid)
  if (place === undefined || start === undefined) return { holder: '', machine: '' }
  const machine = `${encodeURIComponent(hostname())} ${place} `
  return { holder: `${machine}${process.pid} ${start}`, machine }
}

/** The boot and the PID namespace of this process, where there are such. */
function placeOf(): string | undefined {
  if (!isLinux()) return '- -'
  try {
    // A /proc of another PID namespace has other processes under these numbers.
    if (readlinkSync('/proc/self') !== String(process.pid)) return undefined
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${encodeURIComponent(readlinkSync('/proc/self/ns/pid'))}`
  } catch {
    return undefined
  }
}

/** Whether a holder is another process of this machine that no longer exists. */
export function isGone(holder: string): boolean {
  const { holder: mine, machine } = thisProcess()
  if (machine === '' || holder === mine || !holder.startsWith(machine)) return false
  const [pidText = '', start = ''] = holder.slice(machine.length).split(' ')
  const pid = Number(pidText)
  if (!Number.isSafeInteger(pid) || pid < 1) return false
  if (!exists(pid)) return true
  const found = startTime(pid)
  return found !== undefined && found !== start
}

/** Also `true` for a process of another user, which may not be signalled. */
function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * When the process was started, in ticks since the boot: a number that is used again belongs to another process. `ended`
 * for one that its parent has not waited for. `undefined` when it cannot be read.
 */
function startTime(pid: number): string | undefined {
  if (!isLinux()) return '-'
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program comes before, in brackets, and may contain anything: fields count from the third.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : fields[19]
  } catch {
    return undefined
  }
}

function isLinux(): boolean {
  return process.platform === 'linux'
}
