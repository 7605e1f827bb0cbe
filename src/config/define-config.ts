import type { LangoConfigInput } from './config.js'

/** Types a configuration file: `export default defineConfig({ … })`. The object is returned as it is. */
export function defineConfig<const Config extends LangoConfigInput>(config: Config): Config {
  return config
}
