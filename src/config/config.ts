/**
 * The configuration as one schema. Descriptions become `docs/configuration.md`; the `error` texts complete the
 * sentence "`key` is value, but …".
 */

import { z } from 'zod'
import { AGENT_NAME_PATTERN, DEFAULT_AGENT_NAME, type THINKING_LEVELS } from '../base/names.js'
import type { Tool, ToolParameters } from '../tool.js'
import { BUILT_IN_TOOL_NAMES, type BuiltInToolName } from '../tools/tool-names.js'
import { adkAgent, adkSchema, artifactsSchema, limitsSchema, refuseContradictions } from './adk-config.js'
import { engineSchema } from './engine-config.js'
import { DEFAULT_STORE } from './find-config.js'
import { providerSchema } from './provider-config.js'
import {
  anyText,
  budgetSchema,
  effectsSchema,
  flag,
  group,
  list,
  live,
  logger,
  memorySchema,
  meterProvider,
  modelName,
  modelOptions,
  oneOf,
  storeAddress,
  text,
  textFiles,
  textsByName,
  toolSchema,
  tracerProvider,
  webAddress,
  wholeNumber,
} from './schema-parts.js'

import { serverSchema } from './server-config.js'
import { hooksSchema, schedulesSchema } from './waking-config.js'

/** A configuration as it is written: every key is optional. */
export type LangoConfigInput = z.input<typeof configSchema>

/** A checked configuration with defaults filled in. */
export type LangoConfig = z.output<typeof configSchema>

/** The root agent of a configuration. */
export type AgentConfig = NonNullable<LangoConfig['agent']>

/** An agent below the root. In a program its model may be an object of ADK. */
export interface SubAgentConfig<Model = string> {
  name: string
  model?: Model | undefined
  description?: string | undefined
  instruction?: string | undefined
  templating?: boolean | undefined
  thinking?: (typeof THINKING_LEVELS)[number] | undefined
  temperature?: number | undefined
  maxOutputTokens?: number | undefined
  outputSchema?: ToolParameters | undefined
  fallback?: string[] | undefined
  tools?: ToolConfig[] | undefined
  subAgents?: SubAgentConfig<Model>[] | undefined
}

/** A tool by its name, or one made in code: a tool of Lango, or a tool or toolset of ADK. */
export type ToolConfig = string | Tool | object

const agentName = z
  .string({ error: 'must be a name' })
  .regex(AGENT_NAME_PATTERN, {
    error: 'must start with a letter or underscore, followed by letters, digits, underscores or hyphens',
  })
  .refine(name => name !== 'user', { error: 'must be another name: "user" is reserved for the person' })

/** The schema of a root agent. `model` is the schema of its model. */
export function agentSchemaWith<Model extends string | object>(model: z.ZodType<Model, Model>) {
  const fields = {
    model: model
      .optional()
      .describe('The model as `provider/model`. Sub-agents inherit it. Default: see "The default model".'),
    description: anyText
      .optional()
      .describe('What the agent is for. Other agents use it to decide whether to transfer to this one.'),
    instruction: anyText.optional().describe('The system instruction of the agent.'),
    templating: flag
      .optional()
      .describe('Replace `{name}` in the instruction with values of the session’s state. Default false.'),
    ...modelOptions,
    tools: list(toolSchema)
      .optional()
      .describe(
        'Names of tools: built-in tools, tools of MCP servers (`server_tool`), or all tools of a server (`server_*`). In a program, also the tools themselves. Absent: the root agent gets all tools of `tools.builtIn` and `mcpServers`, a sub-agent none.',
      ),
  }
  // The type is spelled out above, because a type cannot be inferred from a schema that contains itself.
  const subAgentSchema: z.ZodType<SubAgentConfig<Model>, SubAgentConfig<Model>> = group({
    name: agentName.describe('The agent’s name, unique in the tree.'),
    ...fields,
    get subAgents() {
      return list(subAgentSchema).optional().describe('Sub-agents of this one, with the same keys.')
    },
  })
  return group({
    name: agentName.default(DEFAULT_AGENT_NAME).describe('The agent’s name.'),
    ...fields,
    subAgents: list(subAgentSchema).optional().describe('Agents that the root can transfer to.'),
    multiAgent: flag.optional().describe('Raises the default of `limits.maxTurns` to 50. Default false.'),
    maxTurns: wholeNumber(1).optional().describe('Same as `limits.maxTurns`, which overrides it.'),
    maxDelegations: wholeNumber(1)
      .optional()
      .describe('Same as `limits.maxDelegations`, which overrides it.'),
  })
}

const PROVIDER_ERROR = 'must be an object with a `type`, or a provider made in code'

const BUDGET_ERROR = 'must be a whole number of tokens, 0 for the default, or "off"'

const historySchema = group({
  maxMessageTokenBudget: z
    .union([z.int({ error: BUDGET_ERROR }).min(0, { error: BUDGET_ERROR }), z.literal('off')], {
      error: BUDGET_ERROR,
    })
    .optional()
    .describe(
      'Maximum number of history tokens sent to a model. 0 or absent: 32000. `off`: only `maxMessages` applies.',
    ),
  maxMessages: wholeNumber(1)
    .optional()
    .describe('Maximum number of messages sent to a model. Default: none, or 100 when the budget is off.'),
  maxAnswerLength: wholeNumber(1000)
    .optional()
    .describe(
      'Maximum number of characters in one answer of a model. A longer answer ends there, with the finish reason `length`. Default 4194304.',
    ),
  observationalMemory: flag
    .optional()
    .describe('Memory with its defaults, and a default budget of 8000 tokens. Default false.'),
  memory: memorySchema
    .optional()
    .describe(
      'What was said stays known: notes about messages that are no longer sent, and the tool `recall`. See memory.md.',
    ),
  repair: oneOf(['repair', 'strict', 'explain'])
    .optional()
    .describe(
      'What to do with a history that a model would reject: repair it, refuse to send it, or send it unchanged and report it. Default `repair`.',
    ),
})

const approvalFlags = Object.fromEntries(
  BUILT_IN_TOOL_NAMES.map(name => [name, flag.optional().describe(`Require approval for \`${name}\`.`)]),
) as Record<BuiltInToolName, z.ZodOptional<z.ZodBoolean>>

const PRIVATE_ERROR = 'must be true, false, or a list of addresses and ranges'

const toolsSchema = group({
  builtIn: list(oneOf(BUILT_IN_TOOL_NAMES))
    .default([])
    .describe(
      'Built-in tools to enable. Tools that an agent names are enabled, too. Default: none; the default agent of the command line, in a folder without a configuration, has all of them.',
    ),
  workspace: text().default('.').describe('The folder that file tools and commands are restricted to.'),
  allowPrivateNetwork: z
    .union([flag, list(text())], { error: PRIVATE_ERROR })
    .default(false)
    .describe(
      'Allow `fetch_url` to connect to private, loopback and link-local addresses: all, or a list of addresses and ranges.',
    ),
  commandTimeoutMs: wholeNumber(1).optional().describe('Timeout of a command. Default 120000.'),
  env: textsByName
    .optional()
    .describe('Environment variables for commands. Keys of the process are not passed on. Never printed.'),
  sandbox: oneOf(['auto', 'off', 'required'])
    .optional()
    .describe(
      'Run commands in a sandbox: if one is available (`auto`), never (`off`), or always (`required`; commands fail without one). Default `auto`.',
    ),
  files: textFiles
    .optional()
    .describe('Who holds text files open, such as an editor: `read` and `write`. Default: nobody.'),
  needsApproval: group(approvalFlags)
    .optional()
    .describe('Which built-in tools require approval. Default: `write_file`, `edit_file` and `run_command`.'),
  effects: effectsSchema.optional(),
  approvalTimeoutMs: wholeNumber(1)
    .optional()
    .describe('How long to wait for an approval; after that, the call is refused. Default: without end.'),
  outputLimitTokens: wholeNumber(1)
    .optional()
    .describe('Longer results are shortened for the model. Default 16000.'),
  keepOutputs: flag
    .optional()
    .describe(
      'Store the full text of shortened results and enable `read_output`. Default: true when there are built-in or MCP tools.',
    ),
})

const mcpServerSchema = group({
  command: text().optional().describe('The program to start. It speaks MCP over stdin and stdout.'),
  args: list(anyText).optional().describe('Its arguments.'),
  env: textsByName.optional().describe('Its environment variables. Never printed.'),
  cwd: text().optional().describe('Its working folder.'),
  url: webAddress().optional().describe('Instead of `command`: the URL of a server with streamable HTTP.'),
  headers: textsByName.optional().describe('Sent with every request to `url`. Never printed.'),
  oauth: group({
    clientId: text()
      .optional()
      .describe(
        'The client that is registered with the authorization server. Default: `lango mcp login` registers one.',
      ),
    clientSecret: text().optional().describe('Its secret, if it has one. Never printed.'),
    scope: text().optional().describe('The scopes to ask for. Default: those that the server names.'),
    redirectPort: wholeNumber(1, 65_535)
      .optional()
      .describe('The port on 127.0.0.1 that the browser is sent back to. Default: any free one.'),
  })
    .optional()
    .describe('For `lango mcp login`, where the authorization server does not register clients.'),
  needsApproval: flag.optional().describe('Require approval for every call of its tools. Default false.'),
  timeoutMs: wholeNumber(1).optional().describe('Timeout of one call without progress. Default 120000.'),
  maxTimeoutMs: wholeNumber(1)
    .optional()
    .describe('Timeout of one call in all, however much progress it reports. Default: 15 times `timeoutMs`.'),
  sampling: flag
    .optional()
    .describe('Whether the server may ask the model of the run, under the budget of the run. Default false.'),
  roots: list(text())
    .optional()
    .describe('Folders that the server may work in, sent to it as its roots. Default: none.'),
}).superRefine((server, context) => {
  if ((server.command === undefined) === (server.url === undefined)) {
    const message = 'must have either `command` (a program to start) or `url` (a server to call), not both'
    context.addIssue({ code: 'custom', message })
  }
})

const logSchema = group({
  level: oneOf(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('The minimum level. `lango serve` on a terminal uses `warn` unless this is set.'),
  content: flag
    .default(false)
    .describe('Log the content of messages, answers and tool calls. Secrets are always hidden.'),
  file: text().optional().describe('The log file. Default: standard error.'),
  pretty: flag.optional().describe('Readable lines instead of JSON. Default: true on a terminal.'),
})

const telemetrySchema = group({
  endpoint: webAddress()
    .optional()
    .describe('An OpenTelemetry collector (OTLP over HTTP). Absent: no spans are created.'),
  headers: textsByName.optional().describe('Sent to the collector. Never printed.'),
  content: flag.default(false).describe('Record the content of messages, answers and tool calls in spans.'),
  metrics: flag.default(true).describe('Send metrics to the collector as well.'),
  serviceName: text().default('lango').describe('The service name of the spans and metrics.'),
  tracerProvider: tracerProvider
    .optional()
    .describe('Instead of `endpoint`: a tracer provider of the application.'),
  meterProvider: meterProvider
    .optional()
    .describe('With `tracerProvider`: a meter provider of the application. Default: the global one.'),
  logger: logger.optional().describe('Reports spans that could not be exported. Default: the log.'),
})

const runsSchema = group({
  maxRunning: wholeNumber(1)
    .optional()
    .describe(
      'Maximum number of runs that are active at once in this process; the others wait. Default: 128 per core, fewer with little memory.',
    ),
  resume: flag
    .optional()
    .describe('Continue runs whose process is gone. With false they end as interrupted. Default true.'),
  maxAttempts: wholeNumber(1)
    .optional()
    .describe('How often a run may begin or be continued without storing anything more. Default 3.'),
})

const retentionSchema = group({
  sessionsDays: wholeNumber(1, 36_500)
    .optional()
    .describe(
      'Delete sessions that have not changed for this many days and have no active run. Default: never.',
    ),
  runsDays: wholeNumber(1, 36_500)
    .optional()
    .describe(
      'Delete run events and sent requests older than this many days. Default: `server.keepRunsDays` for all commands; never in `createRuntime`.',
    ),
  usageDays: wholeNumber(1, 36_500)
    .optional()
    .describe(
      'Delete the records of model calls (tokens, cost) older than this many days. Budgets keep what was spent. Default: never; the server keeps them for 400 days.',
    ),
})

/** Keys that a configuration file and `createRuntime` share. */
export const sharedKeys = {
  app: text().default('lango').describe('The app that sessions belong to.'),
  providers: z
    .record(
      z.string(),
      z.union([providerSchema, live<object>('generate', PROVIDER_ERROR)], { error: PROVIDER_ERROR }),
      {
        error: 'must be an object of providers',
      },
    )
    .default({})
    .describe('Providers by name, as in `name/model`. Providers with default settings need no entry.'),
  rootAgent: adkAgent
    .optional()
    .describe('In a program, instead of `agent`: an agent, a workflow or an app of ADK, used unchanged.'),
  limits: limitsSchema.prefault({}).describe('How far a run may go.'),
  budget: budgetSchema()
    .optional()
    .describe('How much model calls may cost; see money.md. Default: no limit.'),
  history: historySchema
    .prefault({})
    .describe('How much of a session is sent to a model, and how it is repaired.'),
  runs: runsSchema.prefault({}).describe('How the runs of a process are limited.'),
  engine: engineSchema.optional(),
  tools: toolsSchema.prefault({}).describe('Built-in tools.'),
  mcpServers: z
    .record(
      z.string().regex(/^[A-Za-z0-9_-]{1,32}$/, {
        error: 'must consist of letters, digits, underscores and hyphens',
      }),
      mcpServerSchema,
      { error: 'must be an object of servers' },
    )
    .default({})
    .describe('MCP servers by name. The name is the prefix of their tools.'),
  artifacts: artifactsSchema
    .optional()
    .describe(
      'Where the artifacts of agents are kept: with the sessions (`store`), in the process (`memory:`), or in a folder (its path). Also as `{ place, maxBytes }`. Default `store`, with at most 33554432 bytes each.',
    ),
  retention: retentionSchema
    .prefault({})
    .describe('How long data is kept. Checked at startup and every hour; see data-retention.md.'),
  schedules: schedulesSchema
    .optional()
    .describe('Messages that are sent by a calendar; see waking.md. An empty list forgets all of them.'),
  telemetry: telemetrySchema.prefault({}).describe('Spans and metrics for OpenTelemetry.'),
  adk: adkSchema.optional().describe('Passed to ADK unchanged.'),
}

const { app, providers, limits, budget, ...furtherKeys } = sharedKeys

/** The whole configuration. */
export const configSchema = group({
  $schema: z.string().optional().describe('The URL of the JSON schema, for editors.'),
  app,
  store: storeAddress()
    .default(DEFAULT_STORE)
    .describe('Where sessions are stored: `sqlite:…`, `postgres://…` or `memory:`.'),
  providers,
  limits,
  budget,
  agent: agentSchemaWith(modelName)
    .optional()
    .describe('The agent as data. Absent: `agent.ts` next to the configuration, or a default agent.'),
  ...furtherKeys,
  server: serverSchema.prefault({}).describe('The server with the web chat.'),
  hooks: hooksSchema
    .optional()
    .describe('Signed requests of other systems that start runs, at `/api/hooks/{name}`; see waking.md.'),
  log: logSchema.prefault({}).describe('The log.'),
}).superRefine(refuseContradictions)

/** The JSON schema of configuration files, for editors, without what only a program can set. */
export function configJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(configSchema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'custom') jsonSchema.not = {}
    },
  }) as Record<string, unknown>
}
