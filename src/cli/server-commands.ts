/** Commands that serve others: browsers, programs and editors. */
import { AGENT_OPTION, type CommandSpec, JSON_OPTION, MODEL_OPTION } from './command.js'

/** Of the commands that start the server. */
const SERVE_OPTIONS: NonNullable<CommandSpec['options']> = [
  { flags: '-p, --port <number>', description: 'the port; 0 for any free one' },
  {
    flags: '--host <address>',
    description: 'the address to listen on; any address other than loopback needs a token',
  },
  MODEL_OPTION,
  AGENT_OPTION,
  { flags: '--json', description: 'print the address as one line of JSON' },
]

const ACP_COMMAND: CommandSpec = {
  name: 'acp',
  summary: 'serve the agent to an editor (Zed, JetBrains, Neovim)',
  description:
    'Serves the agent to an editor by the Agent Client Protocol, on standard input and output. Editors start it as a\nprogram; the configuration and the agent are those of the folder that the editor works in. Nothing but the\nprotocol goes to standard output; logs go to standard error. Needs the package @agentclientprotocol/sdk.',
  options: [MODEL_OPTION, AGENT_OPTION],
  shared: ['config', 'trust', 'store', 'user', 'app'],
  examples: [
    ['lango acp', 'serve the agent of the folder that the editor opens'],
    ['lango acp --agent agent.ts --model openai/gpt-5.2', 'serve this agent with this model'],
  ],
  run: async (_words, flags) => (await import('./acp/acp.js')).acp(flags),
}

/** `lango mcp`: Lango and the Model Context Protocol. */
const MCP_COMMANDS: CommandSpec = {
  name: 'mcp',
  summary: 'offer the agent and its sessions to MCP clients',
  description:
    'Offers the agent and its sessions to clients of the Model Context Protocol. Without a subcommand, serves them on\nstandard input and output.',
  fallback: 'serve',
  examples: [['lango mcp', 'serve the agent of this folder to the program that started it']],
  commands: [
    {
      name: 'serve',
      summary: 'serve the agent and its sessions as MCP tools',
      description:
        'Serves the agent and its sessions as tools of the Model Context Protocol, on standard input and output. Clients\nstart it as a program. Nothing but the protocol goes to standard output; logs go to standard error.',
      options: [MODEL_OPTION, AGENT_OPTION],
      shared: ['config', 'trust', 'store', 'user', 'app'],
      examples: [
        ['lango mcp serve', 'serve the agent of this folder'],
        [
          'lango mcp serve --model openai/gpt-5.2 --user ada',
          'with this model, and the sessions of this user',
        ],
      ],
      run: async (_words, flags) => (await import('./mcp.js')).serveMcp(flags),
    },
  ],
}

export const SERVER_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'serve',
    summary: 'start the server with the web chat',
    description:
      'Starts the server with the web chat. Without configured tokens it accepts connections from this machine only.',
    options: SERVE_OPTIONS,
    shared: ['config', 'trust', 'store', 'app'],
    examples: [
      ['lango serve', 'listen on the configured port'],
      ['lango serve --port 0 --store memory:', 'listen on any free port, without a database'],
    ],
    run: async (_words, flags) => (await import('./serve.js')).serve(flags),
  },
  {
    name: 'web',
    summary: "start the server with the web chat, or with ADK's own page",
    description:
      "Starts the server as `lango serve` does. With --adk it also serves ADK's own page, adk-web, under /dev-ui/,\nfrom the package @google/adk-devtools, which must be installed in this folder.",
    options: [...SERVE_OPTIONS, { flags: '--adk', description: "serve ADK's own page under /dev-ui/" }],
    shared: ['config', 'trust', 'store', 'app'],
    examples: [['lango web --adk', "open the agent in ADK's page"]],
    run: async (_words, flags) => (await import('./serve.js')).serve(flags),
  },
  ACP_COMMAND,
  MCP_COMMANDS,
]

/** `lango token`: tokens for the server. */
export const TOKEN_COMMANDS: CommandSpec = {
  name: 'token',
  summary: 'generate a token for the server',
  description: 'Generates tokens for the server. Without a subcommand, generates one.',
  fallback: 'new',
  examples: [['lango token new', 'generate a token and its configuration entry']],
  commands: [
    {
      name: 'new',
      summary: 'generate a token and print it with its hash',
      description:
        'Generates a random token and prints it with its hash. The token is for the client of the server; the hash is a\nkey of server.tokens in the configuration. Neither is stored: the token cannot be shown again.',
      options: [JSON_OPTION],
      examples: [
        ['lango token new', 'print both, with instructions'],
        ['lango token new --json | jq -r .hash', 'read the hash, in a script'],
      ],
      run: async (_words, flags) => (await import('./config.js')).tokenNew(flags),
    },
  ],
}
