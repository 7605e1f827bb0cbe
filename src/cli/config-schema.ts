import { printJson } from './output.js'

/** `lango config schema`. */
export async function printConfigSchema(): Promise<number> {
  const { configJsonSchema } = await import('../config/config.js')
  await printJson(configJsonSchema())
  return 0
}
