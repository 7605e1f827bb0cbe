import { hasBubblewrap } from '../../tools/sandbox.js'
import type { Check } from './check.js'

/** Whether commands of tools can be locked in, as far as the configuration asks for it. */
export async function checkSandbox(mode: 'auto' | 'off' | 'required' = 'auto'): Promise<Check> {
  const name = 'sandbox'
  if (mode === 'off') {
    return { name, status: 'ok', message: 'Off: commands run with your own rights, after approval' }
  }
  if (await hasBubblewrap({ PATH: process.env.PATH ?? '' })) {
    return { name, status: 'ok', message: 'bubblewrap works: commands see this machine read-only' }
  }
  const fix =
    process.platform === 'linux'
      ? 'Install bubblewrap and allow user namespaces, or set tools.sandbox to "off".'
      : 'There is none for this system; set tools.sandbox to "off" to be told no more.'
  if (mode === 'required') {
    return { name, status: 'fail', message: 'A sandbox is required, but bubblewrap does not work here.', fix }
  }
  return { name, status: 'warn', message: 'No sandbox: approved commands run with your own rights.', fix }
}
