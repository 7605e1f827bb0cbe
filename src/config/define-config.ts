/** Types a configuration file: `export const config = defineConfig({ … })`. The object is returned as it is. */
export function defineConfig<const Config extends object>(config: Config): Config {
  return config
}
