import { type CommandSpec, JSON_OPTION, type OptionSpec } from './command.js'

const YES_OPTION: OptionSpec = { flags: '-y, --yes', description: 'do not ask' }

/** `lango sessions`: what an operator does with stored sessions. None of it loads ADK. */
export const SESSION_COMMANDS: CommandSpec = {
  name: 'sessions',
  summary: 'list, show, export, import and delete stored sessions',
  description: 'Looks after stored sessions. "lango sessions" alone lists them.',
  fallback: 'list',
  examples: [
    ['lango sessions list --limit 20', 'the newest twenty'],
    ['lango sessions export --all -o backup.jsonl', 'everything into one file'],
  ],
  commands: [
    {
      name: 'list',
      summary: 'list sessions, newest first',
      description: 'Lists sessions, newest first.',
      options: [
        { flags: '--search <text>', description: 'only those whose title or id contains this' },
        { flags: '-n, --limit <number>', description: 'how many; default 50' },
        { flags: '--page <number>', description: 'which page of that many; default 1' },
        { flags: '--cursor <text>', description: 'go on where an earlier page ended' },
        JSON_OPTION,
      ],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [
        ['lango sessions list --user ann', 'those of one user'],
        ['lango sessions list --limit 100 --page 3', 'the third hundred'],
        ['lango sessions list --json | jq -r ".sessions[].key.sessionId"', 'the ids, in a script'],
      ],
      run: async (_words, flags) => (await import('./sessions.js')).listSessions(flags),
    },
    {
      name: 'show',
      summary: 'show the messages of a session',
      description:
        'Shows the newest messages of a session, shortened to be read. --before goes further back; --raw shows each\nmessage whole, as it is stored.',
      arguments: [{ name: '<id>', description: 'the session' }],
      options: [
        { flags: '-n, --limit <number>', description: 'how many messages; default 20' },
        { flags: '--before <number>', description: 'only messages before this one' },
        { flags: '--raw', description: 'one stored message per line, as JSON' },
        { flags: '--json', description: 'the session and these messages as one JSON object' },
      ],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [
        ['lango sessions show s1', 'how it ended'],
        ['lango sessions show s1 --before 80 --limit 40', 'what came before message 80'],
      ],
      run: async (words, flags) => (await import('./sessions.js')).showSession(words, flags),
    },
    {
      name: 'export',
      summary: 'write sessions as JSONL, without loss',
      description:
        'Writes sessions as JSONL: a header line per session, then one stored message per line. Nothing is lost:\n"lango sessions import" restores state and messages exactly. With -o, the file appears when it is complete.',
      arguments: [{ name: '[id...]', description: 'the sessions; not with --all' }],
      options: [
        { flags: '--all', description: 'every session of the app' },
        { flags: '-o, --output <file>', description: 'write to a file instead of standard output' },
      ],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [
        ['lango sessions export s1 > s1.jsonl', 'one session'],
        ['lango sessions export --all -o backup.jsonl', 'all of them'],
      ],
      run: async (words, flags) => (await import('./sessions-export.js')).exportSessions(words, flags),
    },
    {
      name: 'import',
      summary: 'read sessions from JSONL, an ADK database or ADK session JSON',
      description:
        'Reads sessions from an export, from the SQLite file of ADK’s DatabaseSessionService, or from ADK session JSON.\nA session that cannot be read to its end is not kept. A session that exists is refused: --as gives another id.\nState that belongs to the app or the user ("app:", "user:") is kept where it is set already.',
      arguments: [{ name: '<file>', description: 'what to read; "-" is standard input (JSONL only)' }],
      options: [
        { flags: '--as <id>', description: 'the id in this store, for a file with one session' },
        JSON_OPTION,
      ],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [
        ['lango sessions import s1.jsonl --as s1-copy', 'under another id'],
        ['lango sessions import adk.db --app lango', 'an ADK database, for the app "lango"'],
      ],
      run: async (words, flags) => (await import('./sessions-import.js')).importSessions(words, flags),
    },
    {
      name: 'delete',
      summary: 'delete sessions',
      description:
        'Deletes sessions and all that belongs to them. Asks first on a terminal; a script must say --yes.',
      arguments: [{ name: '<id...>', description: 'the sessions' }],
      options: [YES_OPTION, JSON_OPTION],
      shared: ['user', 'app', 'config', 'trust', 'store'],
      examples: [['lango sessions delete s1 s2 --yes', 'both, without asking']],
      exitCodes: [
        [0, 'all were deleted'],
        [1, 'one was not found, or the answer was no'],
      ],
      run: async (words, flags) => (await import('./sessions.js')).deleteSessions(words, flags),
    },
  ],
}
