// Writes docs/configuration.md from the configuration's schema and the table of variables, so that the page
// cannot say anything else than the code. `node scripts/build-config-docs.mjs`; a test compares the result.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The page, from the JSON schema, the variables and the providers that a key switches on. */
export function renderConfigDocs({ schema, variables, providers }) {
  return [
    INTRODUCTION,
    TRUST,
    '## Keys\n',
    'Unknown keys are errors. Keys set to nothing (`undefined`) count as absent.\n',
    ...sections(schema, '', { defs: schema.$defs ?? {}, seen: new Set() }),
    '## Environment\n',
    'A variable that is empty counts as absent; where two set the same key, the upper one wins.\n',
    '| variable | key | |\n|---|---|---|',
    ...variables.map(
      ({ name, path, description }) => `| \`${name}\` | \`${path.join('.')}\` | ${cell(description)} |`,
    ),
    '| `LANGO_CONFIG` | | The configuration file, instead of looking for one. |',
    '| `LANGO_TRUST` | | `1` trusts the folder of the command. Not read from `.env`. |',
    '| `LANGO_TRUST_FILE` | | The list of trusted folders. Not read from `.env`. |',
    '\nProviders read the keys of their vendors themselves (`OPENAI_API_KEY` and so on).\n',
    '## The default model\n',
    '`LANGO_MODEL` wins over the file, as every variable does. When neither names a model, it is that of the first provider under `providers` that has an `apiKey`; else of the first of these whose variable is set; else `demo/demo`, which needs no key.\n',
    '| variable | model |\n|---|---|',
    ...providers.map(
      ({ name, variables: keys, model }) =>
        `| ${keys.map(key => `\`${key}\``).join(', ')} | \`${name}/${model}\` |`,
    ),
    '',
  ].join('\n')
}

const INTRODUCTION = `# Configuration

<!-- Written by scripts/build-config-docs.mjs from the schema. Change the schema, not this page. -->

Lango runs without any configuration. To change something, put one file beside your project:
\`lango.config.ts\`, \`.mts\`, \`.js\`, \`.mjs\`, \`.json\`, \`.yaml\` or \`.yml\`.

\`\`\`ts
import { defineConfig } from 'lango'

export default defineConfig({
  store: 'postgres://localhost/lango',
  agent: { model: 'openai/gpt-5.2', instruction: 'You are a careful librarian.' },
  tools: { builtIn: ['read_file', 'list_files'] },
})
\`\`\`

\`\`\`yaml
providers:
  openai:
    apiKey: \${TEAM_OPENAI_KEY}
server:
  port: \${LANGO_DEV_PORT:-18789}
\`\`\`

TypeScript is read by Node where it can (22.18 and newer), otherwise by \`tsx\` if your project has it.

**Precedence**: options of the command line or of \`loadConfig\`, then the environment, then the file, then defaults. Objects are merged key by key; lists are replaced. \`.env\` beside the file adds variables that the environment does not have.

**Variables in texts**: \`\${NAME}\` is replaced by the variable, \`\${NAME:-text}\` by the text when it is not set or empty; a variable that is missing is an error. \`$\${\` stands for \`\${\`.

**Secrets in texts**: a variable whose name ends like a secret (\`…_KEY\`, \`…_TOKEN\`, \`…_SECRET\`, \`…PASSWORD\`, \`…CREDENTIALS\` and the like) is filled in only where a secret belongs: \`providers.*.apiKey\` and \`headers\`, \`mcpServers.*.env\` and \`headers\`, \`tools.env\`, \`server.tokens\`, \`telemetry.headers\`. Anywhere else, such as a base URL, an argument, a file's name or an instruction, it is an error. The one exception is a database's password: \`store: postgres://me:\${PGPASSWORD}@db/lango\` works, and so does a whole address in \`\${DATABASE_URL}\`; a provider's key or a token in \`store\` does not.

**Paths** in a file are meant from the file's folder; those from variables and options from the working folder.

**An agent in code**: when the configuration has no agent, \`agent.ts\` (or \`.mts\`, \`.js\`, \`.mjs\`) beside it is used if it exports \`rootAgent\`, or an \`app\` or \`rootApp\` with one, as ADK's own tools expect.

**Secrets** are never printed: keys, tokens, headers, variables of MCP servers and passwords in addresses are hidden in every message and listing.
`

const TRUST = `## Trusted folders

A folder that you cloned or downloaded was written by somebody else. Until you trust it, the command line runs no code of it, starts no MCP server of it, and lets nothing in it set an address, header, proxy or store that a key or a message goes to. \`lango trust\` shows what the folder would do, asks, and remembers the answer: [cli.md](cli.md#lango-trust).

| needs trust | |
|---|---|
| \`.env\` | the whole file, as soon as it sets a variable: an address sends your key elsewhere, and a key sends your messages to somebody else's account |
| a configuration in code, \`agent.ts\` and its kin | always, and the files that they import |
| a configuration in data | when it sets anything but the keys below, reads a variable (\`\${…}\`), or is a link to a file outside its folder |
| \`lango.db\` | when it is a link that leads out of the folder |

Without trust these keys of \`lango.config.json\` and \`.yaml\` hold; every other key needs it:

- \`$schema\`, \`app\`, \`history.*\`, \`log.level\`, \`log.pretty\`, \`telemetry.serviceName\`;
- \`store\`: \`memory:\`, or an SQLite file inside the folder, symbolic links followed;
- \`agent.*\` and sub-agents, with no tools but \`read_file\`, \`list_files\`, \`search_files\` and \`current_time\`; \`tools.builtIn\` likewise;
- \`tools.workspace\` inside the folder; \`tools.needsApproval\` when it asks more; \`tools.sandbox\` unless \`off\`; \`tools.allowPrivateNetwork: false\`; timeouts and output limits;
- \`server.port\`, a loopback \`server.host\`, and the server's limits. Tokens, origins and host names need trust.

**What is remembered**: the real path of the folder, and a SHA-256 of each file that runs or redirects: \`.env\`, the configuration, the agent file, every local file that their sources name (relative and absolute paths, \`imports\` and \`exports\` of \`package.json\`, \`paths\` of \`tsconfig.json\`), \`tsconfig.json\` itself, and of \`package.json\` the fields that decide which code is found. Where packages are imported or TypeScript is used, the lock files count, too. When one of them changes, the folder is asked about again, with the names of what changed.

**What is not noticed**: a change inside \`node_modules\` that leaves the lock files as they are, and files whose names a program puts together at run time. Sessions in a database that came with the folder are its author's, approvals in them included: begin a new session. Trust a folder only if you trust its authors with your account; it is no sandbox.

**Where**: \`lango/trust.json\` in \`$XDG_CONFIG_HOME\`, \`~/.config\`, or \`%APPDATA%\` on Windows; \`LANGO_TRUST_FILE\` names another file. Neither this variable nor \`LANGO_TRUST\` is read from \`.env\`. A configuration is looked for in the working folder only, never above it. A file that \`--config\`, \`--agent\` or \`LANGO_CONFIG\` names needs trust as well, because the line may be copied from a page of the same author.

**In a program**: \`createRuntime\` and \`loadConfig\` ask nobody. The program that calls them has chosen the folder and is trusted with it: \`loadConfig()\` reads \`.env\` and runs the configuration. A program that opens folders of others calls \`loadConfig({ cwd, trusted: false })\`, which holds to the list above and runs nothing; \`loadRootAgent\` always runs its file.
`

/** A table for the keys of an object, then one for each object below it. */
function sections(schema, path, context) {
  const rows = []
  const below = []
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const place = path === '' ? name : `${path}.${name}`
    rows.push(
      `| \`${name}\` | ${typeText(property)} | ${defaultText(property)} | ${cell(property.description ?? '')} |`,
    )
    const inner = innerObject(property, context)
    if (inner) below.push({ ...inner, place: `${place}${inner.suffix}`, description: property.description })
  }
  const table = ['| key | type | default | |\n|---|---|---|---|', ...rows, '']
  return [
    ...table,
    ...below.flatMap(inner => [`### \`${inner.place}\`\n`, ...sections(inner.schema, inner.place, context)]),
  ]
}

/** The object that a property holds, directly, by name or in a list. One that contains itself is told once. */
function innerObject(property, { defs, seen }) {
  if (property.properties) return { schema: property, suffix: '' }
  const named = property.additionalProperties
  if (named && typeof named === 'object') {
    const found = [named, ...(named.anyOf ?? [])].find(choice => choice.properties)
    return found && { schema: found, suffix: '.<name>' }
  }
  const reference = property.items?.$ref
  if (!reference) return property.items?.properties && { schema: property.items, suffix: '[]' }
  if (seen.has(reference)) return undefined
  seen.add(reference)
  return { schema: defs[reference.split('/').at(-1)] ?? {}, suffix: '[]' }
}

function typeText(property) {
  if (property.not && Object.keys(property.not).length === 0) return 'object in code'
  if (property.$ref) return 'object'
  if (property.enum) return property.enum.map(value => `\`${value}\``).join(' ')
  if (property.const !== undefined) return `\`${property.const}\``
  if (property.anyOf)
    return [...new Set(property.anyOf.filter(choice => !choice.not).map(typeText))].join(' or ')
  if (property.type === 'array') return `list of ${typeText(property.items ?? {})}`
  if (property.type === 'string') return 'text'
  if (property.type === 'integer') return 'whole number'
  if (property.type === 'object' && property.additionalProperties?.type === 'string') return 'texts by name'
  return property.type ?? 'anything'
}

/** Objects say their defaults key by key. */
function defaultText(property) {
  const value = property.default
  if (value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)) return ''
  return `\`${JSON.stringify(value)}\``
}

function cell(text) {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { tsImport } = await import('tsx/esm/api')
  const load = path => tsImport(new URL(`../src/${path}`, import.meta.url).href, import.meta.url)
  const [config, environment, models] = await Promise.all(
    ['config/config.ts', 'config/environment.ts', 'provider/vendors.ts'].map(load),
  )
  const page = renderConfigDocs({
    schema: config.configJsonSchema(),
    variables: environment.ENVIRONMENT_VARIABLES,
    providers: models.KEYED_PROVIDERS,
  })
  writeFileSync(new URL('../docs/configuration.md', import.meta.url), page)
}
