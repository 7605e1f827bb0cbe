// Writes docs/configuration.md from the configuration's schema and the table of variables, so that the page
// and the code agree. `node scripts/build-config-docs.mjs`; a test compares the result.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The page, from the JSON schema, the variables and the providers that a key switches on. */
export function renderConfigDocs({ schema, variables, providers }) {
  return [
    INTRODUCTION,
    TRUST,
    '## Keys\n',
    'Unknown keys are errors. Keys set to `undefined` count as absent.\n',
    ...sections(schema, '', { defs: schema.$defs ?? {}, seen: new Set() }),
    '## Environment\n',
    'An empty variable counts as absent; if two variables set the same key, the first in the table wins.\n',
    '| variable | key | |\n|---|---|---|',
    ...variables.map(
      ({ name, path, description }) => `| \`${name}\` | \`${path.join('.')}\` | ${cell(description)} |`,
    ),
    '| `LANGO_CONFIG` | | The configuration file, instead of looking for one. |',
    '| `LANGO_TRUST` | | `1` trusts the folder of the command. Not read from `.env`. |',
    '| `LANGO_TRUST_FILE` | | The list of trusted folders. Not read from `.env`. |',
    '| `LANGO_MCP_LOGINS` | | The folder of logins to MCP servers. |',
    '\nEach provider reads the key variable of its vendor (`OPENAI_API_KEY` and so on).\n',
    '## The default model\n',
    '`LANGO_MODEL` takes precedence over the file, like every variable. If neither names a model, Lango uses the default model of the first provider under `providers` that has an `apiKey`; otherwise the first model in this table whose variable is set; otherwise `demo/demo`, which needs no key.\n',
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

Lango runs without any configuration. To change something, put one of these files in the project's folder:
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

TypeScript is loaded by Node itself (22.18 and newer), otherwise by \`tsx\` if your project has it.

**Precedence**, highest first: options of the command line or of \`loadConfig\`, then the environment, then the file, then defaults. Objects are merged key by key; lists are replaced. \`.env\` in the same folder adds variables that are not set in the environment. Both must be regular files: a named pipe or a device is refused, because reading it may never end.

**Variables in strings**: \`\${NAME}\` is replaced by the value of the variable, and \`\${NAME:-text}\` by \`text\` if the variable is not set or empty. Without such a default, a missing variable is an error. \`$\${\` is an escaped \`\${\`.

**Secrets in strings**: a variable whose name ends like the name of a secret (\`…_KEY\`, \`…_TOKEN\`, \`…_SECRET\`, \`…PASSWORD\`, \`…CREDENTIALS\` and similar) is substituted only where a secret belongs: \`providers.*.apiKey\` and \`headers\`, \`mcpServers.*.env\`, \`headers\` and \`oauth.clientSecret\`, \`tools.env\`, \`server.tokens\`, \`telemetry.headers\`. Anywhere else, such as in a base URL, an argument, a file name or an instruction, it is an error. The only exception is a database password: \`store: postgres://me:\${PGPASSWORD}@db/lango\` works, and so does a whole address in \`\${DATABASE_URL}\`; a provider's key or a token in \`store\` does not.

**Paths** in a file are relative to the file's folder; paths in variables and options are relative to the working folder.

**An agent in code**: when the configuration has no agent, \`agent.ts\` (or \`.mts\`, \`.js\`, \`.mjs\`) in the same folder is used if it exports \`rootAgent\`, or an \`app\` or \`rootApp\` with one, as ADK's own tools expect.

**Secrets** are never printed: keys, tokens, headers, variables of MCP servers and passwords in addresses are redacted in every message and listing.
`

const TRUST = `## Trusted folders

A folder that you cloned or downloaded was written by someone else. Until you trust it, the command line runs none of its code, starts none of its MCP servers, and uses no address, header, proxy or store from it to which a key or a message would be sent. \`lango trust\` shows what the folder would do, prompts for confirmation, and stores the answer: [cli.md](cli.md#lango-trust).

| needs trust | |
|---|---|
| \`.env\` | the whole file, if it sets any variable: an address redirects your key, and a key sends your messages to someone else's account |
| a configuration in code, \`agent.ts\` and the other agent files | always, with the files that they import |
| a configuration in JSON or YAML | when it sets anything but the keys below, reads a variable (\`\${…}\`), or is a link to a file outside its folder |
| \`lango.db\` | when it is a link to a file outside the folder |

These keys of \`lango.config.json\` and \`.yaml\` need no trust; every other key does:

- \`$schema\`, \`app\`, \`history.*\`, \`log.level\`, \`log.pretty\`, \`telemetry.serviceName\`;
- \`store\`: \`memory:\`, or a SQLite file inside the folder after symbolic links are resolved;
- \`agent.*\` and sub-agents, with no tools other than \`read_file\`, \`list_files\`, \`search_files\` and \`current_time\`; \`tools.builtIn\` likewise;
- \`tools.workspace\` inside the folder; \`tools.needsApproval\` when it requires more approvals; \`tools.sandbox\` unless \`off\`; \`tools.allowPrivateNetwork: false\`; timeouts and output limits;
- \`server.port\`, a loopback \`server.host\`, and the server's limits. Tokens, origins and host names need trust.

**What is remembered**: the real path of the folder, and a SHA-256 of each file that runs code or redirects keys and messages: \`.env\`, the configuration, the agent file, every local file that their sources name (relative and absolute paths, \`imports\` and \`exports\` of \`package.json\`, \`paths\` of \`tsconfig.json\`), \`tsconfig.json\` itself, and those fields of \`package.json\` that determine which code is loaded. If packages are imported or TypeScript is used, also the lock files. When one of them changes, \`lango\` prompts again and lists the changes.

**What is not detected**: a change inside \`node_modules\` that does not change the lock files, and files whose names are computed at run time. Sessions in a database that came with the folder, including their approvals, were written by the folder's author: start a new session instead of continuing one of them. Trust a folder only if you trust its authors with your account; trust is not a sandbox.

**Where**: \`lango/trust.json\` in \`$XDG_CONFIG_HOME\`, \`~/.config\`, or \`%APPDATA%\` on Windows; \`LANGO_TRUST_FILE\` names another file. Neither this variable nor \`LANGO_TRUST\` is read from \`.env\`. A configuration is looked up only in the working folder, not in its parents. A file named by \`--config\`, \`--agent\` or \`LANGO_CONFIG\` also needs trust, because the command may have been copied from a page written by the same author.

**In a program**: \`createRuntime\` and \`loadConfig\` do not prompt. The program that calls them chose the folder and is responsible for it: \`loadConfig()\` reads \`.env\` and runs the configuration. A program that opens other people's folders should call \`loadConfig({ cwd, trusted: false })\`, which accepts only the keys above and runs nothing; \`loadRootAgent\` always runs its file.
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

/** The object that a property holds, directly, by name or in a list. A recursive one is listed once. */
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
