import type { CommandSpec, OptionSpec } from './command.js'

const JSON_OPTION: OptionSpec = { flags: '--json', description: 'JSON, for scripts' }

/** `lango config`: what the configuration says, and whether it is right. */
export const CONFIG_COMMANDS: CommandSpec = {
  name: 'config',
  summary: 'check and show the configuration',
  description: 'Checks and shows the configuration. "lango config" alone shows it.',
  fallback: 'show',
  examples: [
    ['lango config check', 'is it right?'],
    ['lango config show', 'what holds, and where it comes from'],
  ],
  commands: [
    {
      name: 'check',
      summary: 'say what is wrong, all at once, or "ok"',
      description: 'Says what is wrong with the configuration, all at once, or "ok" and where it comes from.',
      options: [JSON_OPTION],
      shared: ['config', 'trust', 'store'],
      examples: [
        ['lango config check', 'the configuration of this folder'],
        ['lango config check --config other.config.json', 'another one'],
      ],
      exitCodes: [
        [0, 'nothing is wrong'],
        [1, 'something is'],
      ],
      run: async (_words, flags) => (await import('./config.js')).checkConfig(flags),
    },
    {
      name: 'show',
      summary: 'show what holds and where each value comes from',
      description:
        'Shows the configuration with its defaults, and where each value comes from. Keys are never shown.',
      options: [JSON_OPTION],
      shared: ['config', 'trust', 'store'],
      examples: [['lango config show --json | jq .config.store', 'one value, in a script']],
      run: async (_words, flags) => (await import('./config.js')).showConfig(flags),
    },
    {
      name: 'schema',
      summary: 'print the JSON schema of lango.config.json',
      description: 'Prints the JSON schema of lango.config.json and lango.config.yaml, for editors.',
      examples: [
        ['lango config schema > lango.schema.json', 'then name it as "$schema" in lango.config.json'],
      ],
      run: async () => (await import('./config.js')).printConfigSchema(),
    },
  ],
}
