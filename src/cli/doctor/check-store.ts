import { redactText } from '../../base/redact.js'
import { messageOf } from '../../errors.js'
import { inspectStore } from '../../store/open-store.js'
import type { Check } from './check.js'

/** Whether sessions can be kept where the configuration says. Nothing is created or migrated. */
export async function checkStore(url: string): Promise<Check> {
  const name = 'store'
  const shown = redactText(url)
  try {
    const { driver, exists, version, known } = await inspectStore(url)
    if (driver === 'memory') {
      const fix = 'Set store to sqlite:./lango.db to keep sessions.'
      return { name, status: 'warn', message: 'memory: forgets everything when the process ends.', fix }
    }
    if (version > known) {
      const message = `${shown} has schema version ${version}, but this Lango knows ${known}.`
      return { name, status: 'fail', message, fix: 'Update Lango, or name another store.' }
    }
    if (!exists) return { name, status: 'ok', message: `${shown} is made when the first session begins` }
    const older = version < known ? `; it is brought to ${known} when it is opened` : ''
    return { name, status: 'ok', message: `${shown} answers, schema version ${version}${older}` }
  } catch (error) {
    const fix = 'Start the database, or set store to another address: sqlite:./lango.db needs no server.'
    const why = messageOf(error)
    const message = why.includes(shown) ? why : `${shown} cannot be used: ${why}`
    return { name, status: 'fail', message, fix }
  }
}
