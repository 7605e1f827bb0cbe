/** Commands that serve others: browsers, programs and editors. */
import { AGENT_OPTION, type ArgumentSpec, type CommandSpec, JSON_OPTION, MODEL_OPTION } from './command.js'

/** Of the commands that start the server. */
const SERVE_OPTIONS: NonNullable<CommandSpec['options']> = [
  { flags: '-p, --port <number>', description: 'the port; 0 for any free one' },
  {
    flags: '--host <address>',
    description: 'the address to listen on; any address other than loopback needs a token',
  },
  MODEL_OPTION,
  AGENT_OPTION,
  {
    flags: '--engine <name>',
    description: 'what dispatches runs: leases, or dbos on a PostgreSQL store, instead of the configured one',
  },
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
  run: async (io, _words, flags) => (await import('./acp/acp.js')).acp(io, flags),
}

const SERVER_ARGUMENT: ArgumentSpec = { name: '<server>', description: 'its name in mcpServers' }

const MCP_LOGIN_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'login',
    summary: 'log in to an MCP server of the configuration',
    description:
      'Logs in to an MCP server with a `url`, by OAuth in a browser. The tokens are stored in a folder of the user that\nonly the user can read, and are renewed when they expire. Waits five minutes for the browser.',
    arguments: [SERVER_ARGUMENT],
    options: [
      {
        flags: '--no-browser',
        description: 'print the address instead of opening it; the address that follows may be pasted here',
      },
      {
        flags: '--scope <scopes>',
        description: 'the scopes to ask for, instead of those that the server names',
      },
      JSON_OPTION,
    ],
    shared: ['config', 'trust'],
    examples: [
      ['lango mcp login github', 'open a browser and log in'],
      ['lango mcp login github --no-browser', 'log in with the browser of another machine'],
    ],
    run: async (io, words, flags) => (await import('./mcp-login.js')).loginToMcp(io, words, flags),
  },
  {
    name: 'logout',
    summary: 'delete the login to an MCP server',
    description:
      'Deletes the tokens of an MCP server, and asks its authorization server to revoke them. The server is named as in\nthe configuration, or by its address.',
    arguments: [{ name: '<server>', description: 'its name in mcpServers, or its address' }],
    options: [JSON_OPTION],
    shared: ['config', 'trust'],
    examples: [['lango mcp logout github', 'log out']],
    run: async (io, words, flags) => (await import('./mcp-login.js')).logoutOfMcp(io, words, flags),
  },
  {
    name: 'status',
    summary: 'list the MCP servers and the logins to them',
    description:
      'Lists the MCP servers of the configuration, and the logins that are stored for other addresses. Connects to none.',
    options: [JSON_OPTION],
    shared: ['config', 'trust'],
    examples: [['lango mcp status', 'show which servers are logged in to']],
    run: async (io, _words, flags) => (await import('./mcp-login.js')).mcpStatus(io, flags),
  },
]

/** `lango mcp`: Lango and the Model Context Protocol. */
const MCP_COMMANDS: CommandSpec = {
  name: 'mcp',
  summary: 'offer the agent to MCP clients; log in to MCP servers',
  description:
    'Offers the agent and its sessions to clients of the Model Context Protocol, and logs in to the servers that the\nagent takes tools from. Without a subcommand, serves the agent on standard input and output.',
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
      run: async (io, _words, flags) => (await import('./mcp.js')).serveMcp(io, flags),
    },
    ...MCP_LOGIN_COMMANDS,
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
      ['lango serve --port 0 --store memory:', 'listen on any free port, with sessions in memory'],
    ],
    run: async (io, _words, flags) => (await import('./serve.js')).serve(io, flags),
  },
  {
    name: 'web',
    summary: "start the server with the web chat, or with ADK's own page",
    description:
      "Starts the server as `lango serve` does. With --adk it also serves ADK's own page, adk-web, under /dev-ui/,\nfrom the package @google/adk-devtools, which must be installed in this folder.",
    options: [...SERVE_OPTIONS, { flags: '--adk', description: "serve ADK's own page under /dev-ui/" }],
    shared: ['config', 'trust', 'store', 'app'],
    examples: [['lango web --adk', "open the agent in ADK's page"]],
    run: async (io, _words, flags) => (await import('./serve.js')).serve(io, flags),
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
      run: async (io, _words, flags) => (await import('./config.js')).tokenNew(io, flags),
    },
  ],
}

/** `lango schedules`: messages that are sent by a calendar. */
export const SCHEDULE_COMMANDS: CommandSpec = {
  name: 'schedules',
  summary: 'list schedules, or run one now',
  description:
    'Manages messages that are sent by a calendar, as `schedules` in the configuration says. A server on the store sends\nthem. "lango schedules" alone lists them.',
  fallback: 'list',
  examples: [['lango schedules', 'list the schedules with their next ticks']],
  commands: [
    {
      name: 'list',
      summary: 'list schedules with their next tick and last run',
      description:
        'Lists the schedules of the configuration, each with its next tick in local time and its last run. --json has the\nnext three ticks, in milliseconds since 1970.',
      options: [JSON_OPTION],
      shared: ['app', 'config', 'trust', 'store'],
      examples: [
        ['lango schedules list --json | jq ".schedules[].next"', 'read the next ticks, in a script'],
      ],
      run: async (io, _words, flags) => (await import('./schedules.js')).listSchedules(io, flags),
    },
    {
      name: 'run',
      summary: 'send the message of a schedule now and print the answer',
      description:
        'Sends the message of a schedule now, in this process, and prints the answer as "lango run" does. Its ticks are not\nchanged.',
      arguments: [{ name: '<name>', description: 'the schedule' }],
      options: [
        AGENT_OPTION,
        { flags: '--stream', description: 'print the answer as it is written, also to a pipe' },
        { flags: '-q, --quiet', description: 'print the answer only' },
        { flags: '--json', description: 'print the events, one line of JSON each' },
      ],
      shared: ['app', 'config', 'trust', 'store'],
      examples: [['lango schedules run report', 'send the message of the schedule "report"']],
      exitCodes: [
        [0, 'answered, or it waits for an answer'],
        [1, 'an error: there is no such schedule, or its run failed'],
        [2, 'stopped at the turn limit or in a loop'],
        [130, 'interrupted'],
      ],
      run: async (io, words, flags) => (await import('./schedules.js')).runSchedule(io, words, flags),
    },
  ],
}
