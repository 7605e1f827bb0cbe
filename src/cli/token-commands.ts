import type { CommandSpec } from './command.js'

/** `lango token`: tokens for the server. */
export const TOKEN_COMMANDS: CommandSpec = {
  name: 'token',
  summary: 'generate a token for the server',
  description: 'Generates tokens for the server. "lango token" alone generates one.',
  fallback: 'new',
  examples: [['lango token new', 'a token, and what to write into the configuration']],
  commands: [
    {
      name: 'new',
      summary: 'print a new token once, and its hashed form',
      description:
        'Prints a new random token and its hashed form. The token is for the person or program that uses the server;\nthe hashed form is a key of server.tokens in the configuration. Neither is stored: the token cannot be shown again.',
      options: [{ flags: '--json', description: 'JSON, for scripts' }],
      examples: [
        ['lango token new', 'for a person to read'],
        ['lango token new --json | jq -r .hash', 'the hashed form, in a script'],
      ],
      run: async (_words, flags) => (await import('./token-new.js')).tokenNew(flags),
    },
  ],
}
