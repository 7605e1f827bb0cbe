/** The commands, as a table. Each loads its code when it is called, so that help is fast. */

import { THINKING_LEVELS } from '../base/names.js'
import { OPTIONAL_NAMES } from '../packages.js'
import { AGENT_OPTION, type CommandSpec, JSON_OPTION, MODEL_OPTION, type OptionSpec } from './command.js'
import { SCHEDULE_COMMANDS, SERVER_COMMANDS, TOKEN_COMMANDS } from './server-commands.js'
import { DATA_COMMANDS, MEMORY_COMMANDS, RUN_COMMANDS, SESSION_COMMANDS } from './session-commands.js'

/** What the model is asked for. */
const MODEL_OPTIONS: readonly OptionSpec[] = [
  {
    flags: '--thinking <level>',
    description: `how much the model thinks: ${THINKING_LEVELS.join(', ')}`,
    choices: THINKING_LEVELS,
  },
  { flags: '--temperature <number>', description: 'the sampling temperature, from 0 to 2' },
  { flags: '--max-output-tokens <n>', description: 'the most tokens of one answer' },
  {
    flags: '--budget <dollars>',
    description: 'what each run may cost at most, such as 0.50; it ends with an answer there',
  },
  {
    flags: '--fallback <provider/model>',
    description: 'a model that answers while the one before it cannot; may be repeated',
    repeats: true,
  },
]

const SCHEMA_OPTION: OptionSpec = {
  flags: '--schema <file>',
  description: 'a JSON schema: the answer is JSON that satisfies it, printed when it is complete',
}

const TALK: readonly CommandSpec[] = [
  {
    name: 'chat',
    summary: 'chat with an agent in the terminal (the default command)',
    description:
      'Chats with an agent in the terminal. Without an API key the offline demo model answers.\nCtrl-C stops an answer; pressed twice it exits. /help lists the commands of the chat.',
    options: [
      { flags: '-s, --session <id>', description: 'continue a session; default: a new one' },
      MODEL_OPTION,
      ...MODEL_OPTIONS,
      AGENT_OPTION,
    ],
    shared: ['config', 'trust', 'store', 'user', 'app'],
    examples: [
      ['lango', 'chat with the agent of this folder'],
      ['lango chat --session holiday', 'start or continue the session "holiday"'],
      ['lango chat --model anthropic/claude-sonnet-4-6', 'use this model'],
    ],
    run: async (io, _words, flags) => (await import('./chat/chat.js')).chat(io, flags),
  },
  {
    name: 'run',
    summary: 'send one prompt and print the answer, for scripts',
    description:
      'Sends one prompt and prints the answer. Text from standard input is appended to the prompt, or is used as the\nprompt if there is none. Only the answer goes to standard output; tool calls and notices go to standard error.\nA terminal shows the answer as it streams; a pipe receives it when it is complete. Terminal control sequences\nin the answer are removed; --raw keeps them in a pipe. Tool calls that need approval are refused unless they\ncan be approved on a terminal or --yes is given; with --wait the run is left waiting for the answer.',
    arguments: [{ name: '[prompt...]', description: 'the prompt' }],
    options: [
      { flags: '-s, --session <id>', description: 'continue a session; default: a new one' },
      MODEL_OPTION,
      ...MODEL_OPTIONS,
      SCHEMA_OPTION,
      AGENT_OPTION,
      {
        flags: '-f, --file <file>',
        description: 'attach a text, image, PDF, audio or video file; may be repeated',
        repeats: true,
      },
      { flags: '-y, --yes', description: 'allow every tool call without asking' },
      {
        flags: '--wait',
        description: 'do not ask or refuse: leave a run that needs an answer waiting, and print its id',
      },
      {
        flags: '--at <time>',
        description: 'store the run for later and print its id; a time such as 2027-03-01T09:00:00+01:00',
      },
      { flags: '--stream', description: 'stream the text even if the output is a pipe' },
      { flags: '--raw', description: 'keep the model’s control sequences in a pipe; never on a terminal' },
      { flags: '-q, --quiet', description: 'print only errors to standard error' },
      { flags: '--json', description: 'print one run event per line, as JSON' },
    ],
    shared: ['config', 'trust', 'store', 'user', 'app'],
    examples: [
      ['lango run "What is in this folder?"', 'ask the agent of this folder'],
      ['git diff | lango run "Write a commit message"', 'append text from a pipe to the prompt'],
      ['lango run --file chart.png "What does it show?"', 'attach a file'],
      ['lango run --session s1 --json "And now?" | jq -r .type', 'continue a session and read the events'],
      [
        'lango run --session s1 --at 2027-03-01T09:00:00Z "Any news?"',
        'ask later: a server on the store runs it',
      ],
    ],
    exitCodes: [
      [0, 'answered, left waiting for an answer (--wait), or stored for later (--at)'],
      [1, 'an error'],
      [2, 'stopped at the turn limit or in a loop'],
      [130, 'interrupted'],
    ],
    run: async (io, words, flags) => (await import('./run.js')).runOnce(io, words, flags),
  },
]

const CARE: readonly CommandSpec[] = [
  {
    name: 'demo',
    summary: 'see broken histories rejected, and healed',
    description:
      'Sends histories that broke in practice to a fake provider that enforces the real rules: first as they are, then\nthrough Lango. Prints the error of the provider, what was repaired, and the answer. Needs no key, no network and no\ndatabase.',
    arguments: [{ name: '[name]', description: 'one of them, such as killed-in-mid-tool; default: all' }],
    options: [JSON_OPTION],
    examples: [
      ['lango demo', 'show all of them'],
      ['lango demo killed-in-mid-tool', 'show one'],
    ],
    exitCodes: [
      [0, 'all of them were answered'],
      [1, 'one was not, or there is none of that name'],
    ],
    run: async (io, words, flags) => (await import('./demo.js')).demo(io, words, flags),
  },
  {
    name: 'lint',
    summary: 'check a history against the rules of every provider',
    description:
      'Reports which providers would reject a history, and why. Reads a Lango export, an ADK session, a request body for\nGemini, OpenAI or Anthropic, messages of the AI SDK, OpenAI Agents, LangChain, Mastra, Claude Code, Codex or pi, or\na SQLite database that "lango sessions import" reads, and recognizes which it is; "-" reads standard input.\n--output and --fix write it repaired: a request body stays one, any other history becomes a Lango export.',
    arguments: [
      { name: '[file...]', description: 'the history file, or the requests of a conversation in order' },
    ],
    options: [
      { flags: '-s, --session <id>', description: 'a stored session instead of a file' },
      { flags: '--profile <name>', description: 'the profile to check, or "all"; default: all that apply' },
      { flags: '--format <name>', description: 'the format of the file; default: recognized by its content' },
      { flags: '-o, --output <file>', description: 'write the repaired history to this file' },
      { flags: '--out <file>', description: 'the same as --output' },
      { flags: '--fix', description: 'repair a request body in its own file' },
      JSON_OPTION,
    ],
    shared: ['config', 'trust', 'store', 'user', 'app'],
    examples: [
      ['lango lint request.json', 'check a request body that was rejected'],
      ['lango lint request.json --output healed.json', 'also write it repaired'],
      ['lango lint turn1.json turn2.json', 'also check whether each request extends the one before it'],
      ['lango lint transcript.jsonl --profile gemini-3', 'check another agent’s transcript against Gemini 3'],
      ['lango lint --session s1 --profile gemini-3', 'check a stored session against Gemini 3'],
    ],
    exitCodes: [
      [0, 'no provider would reject it, or it was written repaired'],
      [1, 'it could not be read or written'],
      [3, 'at least one provider would reject it, or what was written'],
    ],
    run: async (io, files, { out, ...flags }) =>
      (await import('./lint.js')).lint(io, files, out === undefined ? flags : { output: out, ...flags }),
  },
  {
    name: 'doctor',
    summary: 'check the installation, or diagnose and repair a session',
    description:
      'Without a session, checks the installation. With one, reports what is wrong in its history, which providers\nwould reject it and with which error, and what the repair would change. --fix writes a repaired copy; the\noriginal is never changed.',
    options: [
      { flags: '-s, --session <id>', description: 'the session to check' },
      { flags: '--all', description: 'check every session, of every app unless --app names one' },
      { flags: '--fix', description: 'write a repaired copy' },
      { flags: '--as <id>', description: 'the id of the copy; default: <id>-healed' },
      { flags: '--offline', description: 'do not connect to providers' },
      { flags: '--report', description: 'print what an issue needs, without texts' },
      JSON_OPTION,
    ],
    shared: ['config', 'trust', 'store', 'user', 'app'],
    examples: [
      ['lango doctor', 'check the installation'],
      ['lango doctor --session s1', 'diagnose a session'],
      ['lango doctor --all', 'diagnose every session of the database'],
      ['lango doctor --session s1 --fix', 'write the repaired copy s1-healed'],
    ],
    exitCodes: [
      [0, 'nothing that a provider would reject, or repaired'],
      [1, 'a check failed'],
      [3, 'a provider would reject a session, or --fix could not repair it'],
    ],
    run: async (io, _words, flags) => (await import('./doctor/doctor.js')).doctor(io, flags),
  },
  {
    name: 'strict',
    summary: 'start a fake provider that enforces the real rules',
    description:
      'Starts a fake provider that enforces the real rules of a model generation and rejects requests with the\nvendor’s real error bodies. Point any framework at the base URL that it prints. Any key is accepted; Ctrl-C\nstops it.',
    options: [
      { flags: '--profile <name>', description: 'the rules to enforce: gemini-3, anthropic-4.6, …' },
      {
        flags: '--platform <name>',
        description:
          'serve the profile as azure, bedrock or vertex do: their paths, keys, errors and streams',
      },
      { flags: '-p, --port <number>', description: 'the port; default 0, any free one' },
      { flags: '--lenient', description: 'accept what at least one real server is known to accept' },
      { flags: '--json', description: 'print the address, then each rejected request, as lines of JSON' },
    ],
    examples: [
      ['lango strict --profile gemini-3', 'the rules of Gemini 3, on any free port'],
      ['lango strict --profile anthropic-4.6 --port 8089 --json', 'on this port, for a program'],
    ],
    run: async (io, _words, flags) => (await import('./strict.js')).strict(io, flags),
  },
]

const SETUP: readonly CommandSpec[] = [
  {
    name: 'init',
    summary: 'create a configuration, an agent and a tool',
    description:
      'Asks three questions and creates a configuration, an agent and a tool that run without changes. Existing files\nare never overwritten.',
    arguments: [{ name: '[folder]', description: 'the target folder; default: the current one' }],
    options: [
      { flags: '--name <name>', description: 'the agent’s name' },
      { flags: '-m, --model <provider/model>', description: 'its model; "auto" for one whose key is set' },
      { flags: '--store <url>', description: 'where to store sessions' },
      { flags: '--ts', description: 'write TypeScript (the default where Node or tsx can run it)' },
      { flags: '--js', description: 'write JavaScript' },
      { flags: '--json', description: 'write only lango.config.json, with built-in tools' },
      { flags: '-y, --yes', description: 'do not ask; use the defaults' },
    ],
    examples: [
      ['lango init', 'ask, then write to this folder'],
      ['lango init shop --name clerk --model openai/gpt-5.2 --yes', 'do not ask'],
    ],
    run: async (io, words, flags) => (await import('./init.js')).init(io, words, flags),
  },
  {
    name: 'add',
    summary: 'install what does not come with Lango: SDKs of vendors, PostgreSQL, MCP, …',
    description:
      'Installs packages that do not come with Lango, in versions that work with it, by the package manager of this\nfolder: npm, pnpm, yarn or bun, by the lock file. Takes a name of the list, a provider (groq) or a package (pg).\nWithout a name, lists what can be added and what is installed.',
    arguments: [{ name: '[name...]', description: 'what to add', choices: OPTIONAL_NAMES }],
    options: [
      { flags: '--print', description: 'print the command, and do not run it' },
      {
        flags: '--json',
        description: 'print JSON; the output of the package manager goes to standard error',
      },
    ],
    examples: [
      ['lango add', 'list what can be added'],
      ['lango add openai', 'models of OpenAI, and of every compatible server'],
      ['lango add postgres telemetry', 'a store in PostgreSQL, and traces'],
      ['lango add anthropic --print', 'show the command'],
    ],
    exitCodes: [
      [0, 'installed, or already there'],
      [1, 'unknown name, or the package manager failed'],
    ],
    run: async (io, words, flags) => (await import('./add.js')).add(io, words, flags),
  },
  {
    name: 'trust',
    summary: 'trust a folder, so that its code runs and its addresses apply',
    description:
      'Shows which files of a folder would run, which programs they would start and where keys and messages would be\nsent, and asks for confirmation. Trust is stored by real path and content: after a change, Lango\nasks again. Files that contain only harmless settings need no trust.',
    arguments: [{ name: '[folder]', description: 'the folder; default: the current one' }],
    options: [
      { flags: '--list', description: 'list trusted folders' },
      { flags: '--forget', description: 'no longer trust the folder' },
      { flags: '-y, --yes', description: 'do not ask' },
      { flags: '--json', description: 'with --list: print JSON' },
      AGENT_OPTION,
    ],
    shared: ['config'],
    examples: [
      ['lango trust', 'review this folder and decide'],
      ['lango trust --list', 'list trusted folders'],
      ['lango trust --forget ../old', 'no longer trust it'],
    ],
    run: async (io, words, flags) => (await import('./settle-trust.js')).trust(io, words, flags),
  },
  {
    name: 'models',
    summary: 'list models with their limits, prices and keys',
    description:
      'Lists the models in the catalogue: context window, output limit, price in dollars per million tokens, repair\nprofile, and whether a key is set. Other models work too, with conservative defaults.',
    options: [{ flags: '--provider <name>', description: 'list one provider only' }, JSON_OPTION],
    shared: ['config', 'trust'],
    examples: [
      ['lango models', 'list all models'],
      ['lango models --provider anthropic', 'list one provider'],
    ],
    run: async (io, _words, flags) => (await import('./models.js')).models(io, flags),
  },
  {
    name: 'completion',
    summary: 'print a shell completion script',
    description:
      'Prints a completion script for bash, zsh or fish. Once it is loaded, Tab completes commands and options.',
    arguments: [{ name: '<shell>', description: 'bash, zsh or fish', choices: ['bash', 'zsh', 'fish'] }],
    examples: [
      ['source <(lango completion bash)', 'add to ~/.bashrc'],
      ['source <(lango completion zsh)', 'add to ~/.zshrc, after compinit'],
      ['lango completion fish > ~/.config/fish/completions/lango.fish', 'run once'],
    ],
    run: async (io, [shell = '']) => (await import('./completion.js')).completion(io, shell, LANGO),
  },
]

/** `lango config`: shows and checks the configuration. */
const CONFIG_COMMANDS: CommandSpec = {
  name: 'config',
  summary: 'check and show the configuration',
  description: 'Checks and shows the configuration. Without a subcommand, shows it.',
  fallback: 'show',
  examples: [
    ['lango config check', 'check the configuration'],
    ['lango config show', 'show every value and its source'],
  ],
  commands: [
    {
      name: 'check',
      summary: 'report all problems at once, or "ok"',
      description: 'Reports all problems of the configuration at once, or "ok" and the source of each value.',
      options: [JSON_OPTION],
      shared: ['config', 'trust', 'store'],
      examples: [
        ['lango config check', 'check the configuration of this folder'],
        ['lango config check --config other.config.json', 'check another file'],
      ],
      exitCodes: [
        [0, 'the configuration is valid'],
        [1, 'the configuration is not valid'],
      ],
      run: async (io, _words, flags) => (await import('./config.js')).checkConfig(io, flags),
    },
    {
      name: 'show',
      summary: 'show every value and its source',
      description:
        'Shows the configuration with its defaults, and the source of each value. Secrets are never shown.',
      options: [JSON_OPTION],
      shared: ['config', 'trust', 'store'],
      examples: [['lango config show --json | jq .config.store', 'read one value, in a script']],
      run: async (io, _words, flags) => (await import('./config.js')).showConfig(io, flags),
    },
    {
      name: 'schema',
      summary: 'print the JSON schema of lango.config.json',
      description: 'Prints the JSON schema of lango.config.json and lango.config.yaml, for editors.',
      examples: [
        ['lango config schema > lango.schema.json', 'then set "$schema" in lango.config.json to it'],
      ],
      run: async io => (await import('./config.js')).printConfigSchema(io),
    },
  ],
}

/** The whole command line, in the order of its help. */
export const LANGO: CommandSpec = {
  name: 'lango',
  summary: 'Your ADK agent, on any model, with a history that cannot break.',
  description: 'Your ADK agent, on any model, with a history that cannot break.',
  fallback: 'chat',
  commands: [
    ...TALK,
    ...SERVER_COMMANDS,
    SESSION_COMMANDS,
    RUN_COMMANDS,
    SCHEDULE_COMMANDS,
    MEMORY_COMMANDS,
    ...DATA_COMMANDS,
    ...CARE,
    ...SETUP,
    CONFIG_COMMANDS,
    TOKEN_COMMANDS,
  ],
  examples: [
    ['lango', 'chat with an agent; without a key, with the offline demo'],
    ['lango run "Summarise this" < notes.txt', 'send one prompt, in a script'],
    ['lango sessions list', 'list stored sessions'],
    ['lango doctor', 'check the installation'],
  ],
}
