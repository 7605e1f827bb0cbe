import { AGENT_OPTION, type CommandSpec, JSON_OPTION, type OptionSpec } from './command.js'

const YES_OPTION: OptionSpec = { flags: '-y, --yes', description: 'do not ask for confirmation' }

/** The data of a store as a whole. None of these commands loads ADK. */
export const DATA_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'usage',
    summary: 'show what model calls have used and cost',
    description:
      'Shows tokens and dollars of model calls by day (UTC), user, model and kind: those of runs, and those of the\nobserver of memory. Calls of releases that did not count them yet are missing.',
    options: [
      { flags: '-m, --model <provider/model>', description: 'only this model' },
      { flags: '--from <day>', description: 'the first day, such as 2026-11-01' },
      { flags: '--to <day>', description: 'the last day' },
      { flags: '--csv', description: 'print comma-separated values' },
      JSON_OPTION,
    ],
    shared: ['config', 'store', 'app', 'user', 'trust'],
    examples: [
      ['lango usage', 'all days'],
      ['lango usage --from 2026-11-01 --csv', 'a month for a spreadsheet'],
    ],
    run: async (io, _words, flags) => (await import('./usage.js')).usage(io, flags),
  },
  {
    name: 'erase',
    summary: 'erase everything stored about a user',
    description:
      'Deletes all sessions, messages, state, runs and requests of a user, overwrites them in the file, and prints a\nreceipt. Active runs of the user lose their session and store nothing more. Backups and logs are not changed. Asks\nfor confirmation on a terminal; scripts need --yes.',
    options: [
      {
        flags: '--rewrite',
        description: 'also rewrite the tables, so that no deleted bytes remain in free space; blocks writers',
      },
      YES_OPTION,
      JSON_OPTION,
    ],
    shared: ['user', 'app', 'config', 'trust', 'store'],
    examples: [
      ['lango erase --user ann', 'ask, then erase the data of ann'],
      ['lango erase --user ann --yes --json > receipt.json', 'keep the receipt, in a script'],
    ],
    exitCodes: [
      [0, 'the data was erased, or there was none'],
      [1, 'an error, or erasing was not confirmed'],
    ],
    run: async (io, _words, flags) => (await import('./data.js')).eraseUser(io, flags),
  },
  {
    name: 'backup',
    summary: 'copy the database to a file while it is in use',
    description:
      'Copies a SQLite database to one file while other processes use it. The copy is a snapshot of what was\nacknowledged before the backup began; it is checked and synchronized to disk before it gets its final\nname. For PostgreSQL, prints the pg_dump command to run instead.',
    arguments: [{ name: '<file>', description: 'the file to write' }],
    options: [{ flags: '--force', description: 'replace an existing file' }, JSON_OPTION],
    shared: ['config', 'trust', 'store'],
    examples: [
      ['lango backup lango-monday.db', 'back up the store of this folder'],
      ['lango backup /backups/lango.db --force --json', 'replace the previous backup, in a script'],
    ],
    exitCodes: [
      [0, 'the copy is complete and checked'],
      [1, 'an error; nothing was written'],
      [3, 'PostgreSQL: nothing was copied, the command to run was printed'],
    ],
    run: async (io, words, flags) => (await import('./data.js')).backUp(io, words, flags),
  },
  {
    name: 'restore',
    summary: 'replace the database with a backup',
    description:
      'Checks a backup and puts it in place of the SQLite database. The current database is kept under another\nname. Refused while another process has the database open. For PostgreSQL, prints the pg_restore command to\nrun instead. Asks for confirmation on a terminal; scripts need --yes.',
    arguments: [{ name: '<file>', description: 'the backup' }],
    options: [YES_OPTION, JSON_OPTION],
    shared: ['config', 'trust', 'store'],
    examples: [
      ['lango restore lango-monday.db', 'ask, then replace the store of this folder'],
      ['lango restore lango-monday.db --store sqlite:./drill.db --yes', 'try a backup in another file'],
    ],
    exitCodes: [
      [0, 'the backup is in place'],
      [1, 'an error, or restoring was not confirmed; the database is unchanged'],
      [3, 'PostgreSQL: nothing was restored, the command to run was printed'],
    ],
    run: async (io, words, flags) => (await import('./data.js')).restore(io, words, flags),
  },
]

/** `lango sessions`: stored sessions. None of these commands loads ADK. */
export const SESSION_COMMANDS: CommandSpec = {
  name: 'sessions',
  summary: 'list, show, export, import and delete stored sessions',
  description: 'Manages stored sessions. "lango sessions" alone lists them.',
  fallback: 'list',
  examples: [
    ['lango sessions list --limit 20', 'list the newest twenty'],
    ['lango sessions export --all -o backup.jsonl', 'export everything to one file'],
  ],
  commands: [
    {
      name: 'list',
      summary: 'list sessions, newest first',
      description: 'Lists sessions, newest first.',
      options: [
        { flags: '--search <text>', description: 'only sessions whose title or id contains this text' },
        { flags: '-n, --limit <number>', description: 'sessions per page; default 50' },
        { flags: '--page <number>', description: 'the page to list; default 1' },
        { flags: '--cursor <text>', description: 'continue after an earlier page' },
        JSON_OPTION,
      ],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [
        ['lango sessions list --user ann', 'list the sessions of one user'],
        ['lango sessions list --limit 100 --page 3', 'list sessions 201 to 300'],
        ['lango sessions list --json | jq -r ".sessions[].key.sessionId"', 'read the ids, in a script'],
      ],
      run: async (io, _words, flags) => (await import('./sessions.js')).listSessions(io, flags),
    },
    {
      name: 'show',
      summary: 'show the messages of a session',
      description:
        'Shows the newest messages of a session, shortened. --before shows earlier ones; --raw prints each message in\nfull, as it is stored.',
      arguments: [{ name: '<id>', description: 'the session' }],
      options: [
        { flags: '-n, --limit <number>', description: 'number of messages; default 20' },
        { flags: '--before <number>', description: 'only messages before this number' },
        { flags: '--raw', description: 'print one stored message per line, as JSON' },
        { flags: '--json', description: 'print the session and these messages as one JSON object' },
      ],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [
        ['lango sessions show s1', 'show the newest messages'],
        ['lango sessions show s1 --before 80 --limit 40', 'show the 40 messages before message 80'],
      ],
      run: async (io, words, flags) => (await import('./sessions.js')).showSession(io, words, flags),
    },
    {
      name: 'export',
      summary: 'export sessions as JSONL, without loss, or for another framework',
      description:
        'Exports sessions as JSONL: for each session a header line, then one stored message per line. The export is\nlossless: "lango sessions import" restores state and messages exactly. With -o, the file is written atomically.\n--to writes one session in the form of another framework (adk, adk-python, ai-sdk-ui, ai-sdk-model, langchain, mastra,\nopenai-agents) or as the body of a request (openai-chat, openai-responses, anthropic, gemini), and names what that form\nhas no place for.',
      arguments: [{ name: '[id...]', description: 'the sessions to export; not with --all' }],
      options: [
        { flags: '--all', description: 'export every session of the app' },
        { flags: '--to <format>', description: 'the form to write; default: lango' },
        { flags: '-o, --output <file>', description: 'write to a file instead of standard output' },
      ],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [
        ['lango sessions export s1 > s1.jsonl', 'export one session'],
        ['lango sessions export --all -o backup.jsonl', 'export all sessions'],
        ['lango sessions export s1 --to ai-sdk-ui -o messages.json', 'continue it with the AI SDK'],
      ],
      run: async (io, words, flags) =>
        (await import('./sessions-export.js')).exportSessions(io, words, flags),
    },
    {
      name: 'import',
      summary: 'import sessions of Lango, of ADK or of another program',
      description:
        'Imports sessions from an export, from a database of ADK, Mastra, LangGraph or the OpenAI Agents SDK (a SQLite file,\nor postgres://…), from ADK session JSON, or from messages of the AI SDK, OpenAI Agents, LangChain, Mastra, Claude\nCode, Codex, pi or a request body. Fields that are not stored are named. A session that cannot be read completely is\nnot stored. A session that already exists is refused; --as gives it another id. Existing state of the app or the user\n("app:", "user:") is not overwritten.',
      arguments: [
        {
          name: '<file>',
          description: 'the file, or the URL of a PostgreSQL database; "-" for standard input (JSONL only)',
        },
      ],
      options: [
        { flags: '--as <id>', description: 'the new id, for a file with one session' },
        { flags: '--agent <name>', description: 'the agent that answers of other programs are stored under' },
        {
          flags: '--author <name=agent>',
          description: 'store what the agent NAME of the file said under AGENT',
          repeats: true,
        },
        {
          flags: '--format <name>',
          description: 'the format of the file; default: recognized by its content',
        },
        { flags: '--dry-run', description: 'list the sessions and store nothing' },
        JSON_OPTION,
      ],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [
        ['lango sessions import s1.jsonl --as s1-copy', 'import under another id'],
        ['lango sessions import adk.db --app lango', 'import an ADK database for the app "lango"'],
        ['lango sessions import adk.db --author clerk=lango-agent', 'continue what the agent "clerk" began'],
        ['lango sessions import mastra.db --dry-run', 'list the sessions of a Mastra database'],
        ['lango sessions import transcript.jsonl --as refactoring', 'continue another agent’s conversation'],
      ],
      run: async (io, words, flags) =>
        (await import('./sessions-import.js')).importSessions(io, words, flags),
    },
    {
      name: 'delete',
      summary: 'delete sessions',
      description:
        'Deletes sessions with their messages, runs and state. Asks for confirmation on a terminal; scripts need --yes.',
      arguments: [{ name: '<id...>', description: 'the sessions to delete' }],
      options: [YES_OPTION, JSON_OPTION],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [['lango sessions delete s1 s2 --yes', 'delete both without confirmation']],
      exitCodes: [
        [0, 'all were deleted'],
        [1, 'one was not found, or deletion was not confirmed'],
      ],
      run: async (io, words, flags) => (await import('./sessions.js')).deleteSessions(io, words, flags),
    },
  ],
}

/** `lango runs`: accepted, running and ended runs. Only `resume` loads ADK. */
export const RUN_COMMANDS: CommandSpec = {
  name: 'runs',
  summary: 'list, show, stop, answer and resume runs',
  description:
    'Manages runs. "lango runs" alone lists those that are scheduled, queued, running or waiting, in any process on the\nstore; with --all also those that have ended.',
  fallback: 'list',
  examples: [
    ['lango runs', 'list what is scheduled, queued, running or waiting for an answer'],
    ['lango runs --all', 'list also what has ended, and how'],
    ['lango runs stop 6f9b2a52-0a0e-4c6b-9d6a-3a1f0c7d1e11', 'stop a run'],
  ],
  commands: [
    {
      name: 'list',
      summary: 'list runs that have not ended, all runs, or the runs of a session',
      description:
        'Lists the runs of the app that are queued, running or waiting for an answer, in the order of acceptance, then those\nthat are scheduled, with their times. With --all, lists every run of the app, newest first, ended ones included. With\n--session, lists the scheduled runs of that session, then the others, newest first, ended ones included.',
      options: [
        { flags: '-s, --session <id>', description: 'the runs of this session' },
        { flags: '--all', description: 'every run, ended ones included' },
        { flags: '-n, --limit <number>', description: 'number of runs; default 50' },
        JSON_OPTION,
      ],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [
        ['lango runs list --all --limit 10', 'list the ten newest runs, ended ones included'],
        ['lango runs list --session holiday', 'list the runs of a session'],
        ['lango runs list --json | jq -r ".runs[].runId"', 'read the ids, in a script'],
      ],
      run: async (io, _words, flags) => (await import('./runs.js')).listRuns(io, flags),
    },
    {
      name: 'show',
      summary: 'show a run and its tool calls',
      description:
        'Shows where a run is, what it waits for, how it ended, its answer, and the ledger of its tool calls: what was\nstarted, done, failed, or has an unknown outcome. --json adds its events.',
      arguments: [{ name: '<id>', description: 'the run' }],
      options: [JSON_OPTION],
      shared: ['app', 'config', 'trust', 'store'],
      examples: [['lango runs show 6f9b2a52-0a0e-4c6b-9d6a-3a1f0c7d1e11', 'show a run']],
      run: async (io, words, flags) => (await import('./runs.js')).showRun(io, words, flags),
    },
    {
      name: 'stop',
      summary: 'stop runs, in whichever process they are',
      description:
        'Stops runs. A queued or scheduled run ends at once and never begins; the process of a running one is requested to stop it. A\nrun that has ended is left as it is.',
      arguments: [{ name: '<id...>', description: 'the runs' }],
      options: [JSON_OPTION],
      shared: ['app', 'config', 'trust', 'store'],
      examples: [['lango runs stop 6f9b2a52-0a0e-4c6b-9d6a-3a1f0c7d1e11', 'stop a run']],
      run: async (io, words, flags) => (await import('./runs.js')).stopRuns(io, words, flags),
    },
    {
      name: 'answer',
      summary: 'answer a tool call that waits for a person',
      description:
        'Answers a tool call that waits for a person. An approval is answered with once, always or no. A call whose outcome\nis unknown is answered with happened (it took effect), run (it did not: run it) or leave (it stays unknown);\n{"happened":true,"result":…} also gives the output of a node of a workflow.\nA run that waits without a process is continued by a server on the store, or by "lango runs resume".',
      arguments: [
        { name: '<id>', description: 'the run' },
        { name: '<call>', description: 'the tool call' },
        { name: '<answer>', description: 'once, always, no, happened, run or leave' },
      ],
      options: [JSON_OPTION],
      shared: ['app', 'config', 'trust', 'store'],
      examples: [['lango runs answer 6f9b2a52-0a0e-4c6b-9d6a-3a1f0c7d1e11 call_1 once', 'approve this call']],
      run: async (io, words, flags) => (await import('./runs.js')).answerRun(io, words, flags),
    },
    {
      name: 'resume',
      summary: 'continue a run whose process is gone, or that has got its answer',
      description:
        'Continues a run in this process and prints what follows. Model calls and tool calls that are stored are not\nrepeated. Servers on the store do this by themselves; the command is for stores without one. A run that waits for\nan answer is left waiting; one that is scheduled begins now.',
      arguments: [{ name: '<id>', description: 'the run' }],
      options: [
        AGENT_OPTION,
        { flags: '--stream', description: 'print the answer as it is written, also to a pipe' },
        { flags: '-q, --quiet', description: 'print the answer only' },
        { flags: '--json', description: 'print the events that follow, one line of JSON each' },
      ],
      shared: ['app', 'config', 'trust', 'store'],
      examples: [['lango runs resume 6f9b2a52-0a0e-4c6b-9d6a-3a1f0c7d1e11', 'continue a run']],
      exitCodes: [
        [0, 'answered, or it waits for an answer'],
        [1, 'an error: the run does not exist, has ended, or failed'],
        [2, 'stopped at the turn limit or in a loop'],
        [130, 'interrupted'],
      ],
      run: async (io, words, flags) => (await import('./runs.js')).resumeRun(io, words, flags),
    },
  ],
}

const SESSION_ARGUMENT = { name: '<session>', description: 'the session' }

/** `lango memory`: notes about sessions. None of these commands loads ADK. */
export const MEMORY_COMMANDS: CommandSpec = {
  name: 'memory',
  summary: 'list, show, forget, rebuild and export what is noted about a session',
  description: 'Manages the notes about a session and the index of its words. Messages are never changed.',
  examples: [
    ['lango memory list holiday', 'what is known, and where from'],
    ['lango memory forget holiday 12', 'forget a note'],
  ],
  commands: [
    {
      name: 'list',
      summary: 'list the notes about a session',
      description: 'Lists the notes about a session with their sources, oldest first.',
      arguments: [SESSION_ARGUMENT],
      options: [{ flags: '--all', description: 'also those that were replaced or forgotten' }, JSON_OPTION],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [['lango memory list holiday --json', 'the notes and how far memory has got, in a script']],
      run: async (io, words, flags) => (await import('./memory.js')).listMemory(io, words, flags),
    },
    {
      name: 'show',
      summary: 'show a note with its source',
      description: 'Shows a note, the notes that it replaced, and the messages that it comes from.',
      arguments: [SESSION_ARGUMENT, { name: '<number>', description: 'the note' }],
      options: [JSON_OPTION],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [['lango memory show holiday 12', 'where note 12 comes from']],
      run: async (io, words, flags) => (await import('./memory.js')).showMemory(io, words, flags),
    },
    {
      name: 'forget',
      summary: 'forget notes',
      description:
        'Deletes the texts of notes, and of those that they replaced. The messages stay; delete the session to remove them.',
      arguments: [SESSION_ARGUMENT, { name: '[number...]', description: 'the notes' }],
      options: [{ flags: '--all', description: 'every note of the session' }, JSON_OPTION],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [['lango memory forget holiday 12 13', 'forget two notes']],
      run: async (io, words, flags) => (await import('./memory.js')).forgetMemory(io, words, flags),
    },
    {
      name: 'rebuild',
      summary: 'build the index again, and let notes be taken again',
      description:
        'Deletes the index and the notes of a session, forgotten ones excepted, and indexes its messages. Notes are taken\nagain by the next run of the session, by the observer that is configured then.',
      arguments: [SESSION_ARGUMENT],
      options: [JSON_OPTION],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [['lango memory rebuild holiday', 'after the observer was changed']],
      run: async (io, words, flags) => (await import('./memory.js')).rebuildMemory(io, words, flags),
    },
    {
      name: 'export',
      summary: 'print all notes as JSON lines',
      description:
        'Prints every note of a session, replaced and forgotten ones included, one line of JSON each.',
      arguments: [SESSION_ARGUMENT],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [['lango memory export holiday > notes.jsonl', 'keep the notes in a file']],
      run: async (io, words, flags) => (await import('./memory.js')).exportMemory(io, words, flags),
    },
  ],
}
