/** The commands, as a table. Each loads its code when it is called: help must not wait for anything. */

import { type CommandSpec, JSON_OPTION, type OptionSpec } from './command.js'
import { SESSION_COMMANDS } from './session-commands.js'

const MODEL_OPTION: OptionSpec = {
  flags: '-m, --model <provider/model>',
  description: 'the model, as openai/gpt-5.2; default: the configured one, or one whose key is set',
}

const AGENT_OPTION: OptionSpec = {
  flags: '--agent <file>',
  description: 'a file that exports an ADK agent as rootAgent',
}

const TALK: readonly CommandSpec[] = [
  {
    name: 'chat',
    summary: 'talk to an agent in the terminal (what plain "lango" does)',
    description:
      'Talks to an agent in the terminal. Without a key the offline demo model answers.\nCtrl-C stops an answer, twice it leaves; /help lists what can be typed.',
    options: [
      { flags: '-s, --session <id>', description: 'go on with a session; default: a new one' },
      MODEL_OPTION,
      AGENT_OPTION,
    ],
    shared: ['config', 'trust', 'store', 'user', 'app'],
    examples: [
      ['lango', 'talk to the agent of this folder'],
      ['lango chat --session holiday', 'begin or go on with the session "holiday"'],
      ['lango chat --model anthropic/claude-sonnet-4-6', 'with this model'],
    ],
    run: async (_words, flags) => (await import('./chat/chat.js')).chat(flags),
  },
  {
    name: 'run',
    summary: 'ask once and print the answer; for scripts',
    description:
      'Asks once and prints the answer. Text that is piped in follows the prompt, or is the prompt.\nOnly the answer goes to standard output; tools and notices go to standard error. A pipe gets the answer when\nit is complete, a terminal as it comes. Tools that need approval are refused unless a terminal can be asked\nor --yes is given.',
    arguments: [{ name: '[prompt...]', description: 'what to ask' }],
    options: [
      { flags: '-s, --session <id>', description: 'go on with a session; default: a new one' },
      MODEL_OPTION,
      AGENT_OPTION,
      {
        flags: '-f, --file <file>',
        description: 'attach a text, image, PDF, audio or video file; may be repeated',
        repeats: true,
      },
      { flags: '-y, --yes', description: 'allow every tool call without asking' },
      { flags: '--stream', description: 'stream all text as it comes, also into a pipe' },
      { flags: '-q, --quiet', description: 'nothing on standard error but errors' },
      { flags: '--json', description: 'one run event per line' },
    ],
    shared: ['config', 'trust', 'store', 'user', 'app'],
    examples: [
      ['lango run "What is in this folder?"', 'ask the agent of this folder'],
      ['git diff | lango run "Write a commit message"', 'the piped text follows the prompt'],
      ['lango run --file chart.png "What does it show?"', 'with an attachment'],
      ['lango run --session s1 --json "And now?" | jq -r .type', 'go on, and read the events'],
    ],
    exitCodes: [
      [0, 'answered'],
      [1, 'an error'],
      [2, 'ended by the turn limit or because it went in circles'],
      [130, 'interrupted'],
    ],
    run: async (words, flags) => (await import('./run.js')).runOnce(words, flags),
  },
  {
    name: 'serve',
    summary: 'start the server with the web chat',
    description:
      'Starts the server with the web chat. It listens on this machine only, unless tokens are configured.',
    options: [
      { flags: '-p, --port <number>', description: 'the port; 0 takes any free one' },
      { flags: '--host <address>', description: 'the address to listen on; any but loopback needs a token' },
      MODEL_OPTION,
      AGENT_OPTION,
      { flags: '--json', description: 'one JSON line with the address' },
    ],
    shared: ['config', 'trust', 'store', 'app'],
    examples: [
      ['lango serve', 'at the configured port'],
      ['lango serve --port 0 --store memory:', 'at any free port, remembering nothing'],
    ],
    run: async (_words, flags) => (await import('./serve.js')).serve(flags),
  },
]

const CARE: readonly CommandSpec[] = [
  {
    name: 'lint',
    summary: 'judge a history by the rules of every provider',
    description:
      'Says which providers would refuse a history, and why. Reads an export of Lango, an ADK session, or a request\nbody for Gemini, OpenAI or Anthropic; "-" reads standard input.',
    arguments: [{ name: '[file]', description: 'the history; not with --session' }],
    options: [
      { flags: '-s, --session <id>', description: 'a stored session instead of a file' },
      { flags: '--profile <name>', description: 'judge by one set of rules, or by all' },
      JSON_OPTION,
    ],
    shared: ['config', 'trust', 'store', 'user', 'app'],
    examples: [
      ['lango lint request.json', 'a request body that was refused'],
      ['lango lint --session s1 --profile gemini-3', 'a stored session, by the rules of Gemini 3'],
    ],
    exitCodes: [
      [0, 'no provider would refuse it'],
      [1, 'it could not be read'],
      [3, 'it would be refused'],
    ],
    run: async ([file], flags) => (await import('./lint.js')).lint(file, flags),
  },
  {
    name: 'doctor',
    summary: 'check the installation, or explain and heal a session',
    description:
      'Without a session, checks the installation. With one, says what is wrong in its history, which providers would\nrefuse it and with which error, and what the repair would do. --fix writes a healed copy; the original is never\ntouched.',
    options: [
      { flags: '-s, --session <id>', description: 'the session to look at' },
      { flags: '--all', description: 'every session' },
      { flags: '--fix', description: 'write a healed copy' },
      { flags: '--as <id>', description: 'the name of the copy; default: <id>-healed' },
      { flags: '--offline', description: 'do not try to reach providers' },
      JSON_OPTION,
    ],
    shared: ['config', 'trust', 'store', 'user', 'app'],
    examples: [
      ['lango doctor', 'is everything in place?'],
      ['lango doctor --session s1', 'what is wrong with it?'],
      ['lango doctor --session s1 --fix', 'make a healed copy, s1-healed'],
    ],
    exitCodes: [
      [0, 'all is well, or healed'],
      [1, 'a check failed'],
      [3, 'a session has problems'],
    ],
    run: async (_words, flags) => (await import('./doctor/doctor.js')).doctor(flags),
  },
  {
    name: 'strict',
    summary: 'start a fake provider that enforces the real rules',
    description:
      'Starts a fake provider that enforces the real rules of a model generation and refuses with the vendor’s real\nerror bodies. Point any framework at the base URL that it prints. Ctrl-C stops it; any key is accepted.',
    options: [
      { flags: '--profile <name>', description: 'whose rules: gemini-3, openai-chat, anthropic-4.6, …' },
      { flags: '-p, --port <number>', description: 'the port; default 0: any free one' },
      { flags: '--lenient', description: 'accept what has been seen to be accepted at least somewhere' },
      {
        flags: '--json',
        description: 'one JSON line with profile, baseUrl and port, then one per refused request',
      },
    ],
    examples: [
      ['lango strict --profile gemini-3', 'the rules of Gemini 3, at any free port'],
      ['lango strict --profile anthropic-4.6 --port 8089 --json', 'at this port, for a program'],
    ],
    run: async (_words, flags) => (await import('./strict.js')).strict(flags),
  },
]

const SETUP: readonly CommandSpec[] = [
  {
    name: 'init',
    summary: 'write a configuration, an agent and a tool to begin with',
    description:
      'Asks three questions and writes a configuration, an agent and a tool that work as they are. Never overwrites.',
    arguments: [{ name: '[folder]', description: 'where; default: here' }],
    options: [
      { flags: '--name <name>', description: 'the agent’s name' },
      { flags: '-m, --model <provider/model>', description: 'its model; "auto" takes one whose key is set' },
      { flags: '--store <url>', description: 'where sessions are kept' },
      { flags: '--ts', description: 'write TypeScript (the default where it can be read)' },
      { flags: '--js', description: 'write JavaScript' },
      { flags: '--json', description: 'write lango.config.json alone, with built-in tools' },
      { flags: '-y, --yes', description: 'ask nothing, take the defaults' },
    ],
    examples: [
      ['lango init', 'ask, then write into this folder'],
      ['lango init shop --name clerk --model openai/gpt-5.2 --yes', 'ask nothing'],
    ],
    run: async (words, flags) => (await import('./init.js')).init(words, flags),
  },
  {
    name: 'trust',
    summary: 'trust this folder: let its files run and set addresses',
    description:
      'Shows what a folder would run, which programs it would start and where it would send keys and messages, and\nasks. What is trusted is remembered by real path and content: a change asks again. Files that only set harmless\nthings need no trust.',
    arguments: [{ name: '[folder]', description: 'which; default: this one' }],
    options: [
      { flags: '--list', description: 'list trusted folders' },
      { flags: '--forget', description: 'trust the folder no longer' },
      { flags: '-y, --yes', description: 'do not ask' },
      { flags: '--json', description: 'with --list: JSON, for scripts' },
      AGENT_OPTION,
    ],
    shared: ['config'],
    examples: [
      ['lango trust', 'look at this folder, and decide'],
      ['lango trust --list', 'which folders are trusted'],
      ['lango trust --forget ../old', 'trust it no longer'],
    ],
    run: async (words, flags) => (await import('./trust.js')).trust(words, flags),
  },
  {
    name: 'models',
    summary: 'list models with their limits, prices and keys',
    description:
      'Lists models that are known by name: window, output limit, dollars per million tokens, repair profile, and\nwhether a key is there. Other models work too; their figures are careful guesses.',
    options: [{ flags: '--provider <name>', description: 'of one provider only' }, JSON_OPTION],
    shared: ['config', 'trust'],
    examples: [
      ['lango models', 'all of them'],
      ['lango models --provider anthropic', 'those of one provider'],
    ],
    run: async (_words, flags) => (await import('./models.js')).models(flags),
  },
  {
    name: 'completion',
    summary: 'print a script that completes commands in a shell',
    description:
      'Prints a script for bash, zsh or fish. Once it is loaded, Tab completes commands and options.',
    arguments: [{ name: '<shell>', description: 'bash, zsh or fish', choices: ['bash', 'zsh', 'fish'] }],
    examples: [
      ['source <(lango completion bash)', 'in ~/.bashrc'],
      ['source <(lango completion zsh)', 'in ~/.zshrc, after compinit'],
      ['lango completion fish > ~/.config/fish/completions/lango.fish', 'once'],
    ],
    run: async ([shell = '']) => (await import('./completion.js')).completion(shell, LANGO),
  },
]

/** `lango config`: what the configuration says, and whether it is right. */
const CONFIG_COMMANDS: CommandSpec = {
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

/** `lango token`: tokens for the server. */
const TOKEN_COMMANDS: CommandSpec = {
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

/** The whole command line, in the order of its help. */
export const LANGO: CommandSpec = {
  name: 'lango',
  summary: 'Your ADK agent, on any model, with a history that cannot break.',
  description: 'Your ADK agent, on any model, with a history that cannot break.',
  fallback: 'chat',
  commands: [...TALK, SESSION_COMMANDS, ...CARE, ...SETUP, CONFIG_COMMANDS, TOKEN_COMMANDS],
  examples: [
    ['lango', 'talk to an agent; without a key, to the offline demo'],
    ['lango run "Summarise this" < notes.txt', 'ask once, in a script'],
    ['lango sessions list', 'what was talked about'],
    ['lango doctor', 'is everything in place?'],
  ],
}
