/**
 * Everything that can be configured, as one schema. Descriptions become `docs/configuration.md`; the `error`
 * texts finish the sentence "`key` is value, but …", so each says what would be right.
 */

import { z } from 'zod'
import type { Tool } from '../tool.js'
import { BUILT_IN_TOOL_NAMES, type BuiltInToolName } from '../tools/tool-names.js'
import { DEFAULT_STORE } from './find-config.js'
import {
  adkAgent,
  adkSchema,
  amount,
  anyFunction,
  anyText,
  environment,
  flag,
  group,
  list,
  live,
  logger,
  oneOf,
  profileSchema,
  storeAddress,
  text,
  textsByName,
  toolSchema,
  tracerProvider,
  webAddress,
  wholeNumber,
} from './schema-parts.js'

import { serverSchema } from './server-config.js'

/** A configuration as a person writes it: every key may be left out. */
export type LangoConfigInput = z.input<typeof configSchema>

/** A configuration that was checked and whose defaults are filled in. */
export type LangoConfig = z.output<typeof configSchema>

/** The root agent of a configuration. */
export type AgentConfig = NonNullable<LangoConfig['agent']>

/** An agent below the root. A program may give it a model of its own making. */
export interface SubAgentConfig<Model = string> {
  name: string
  model?: Model | undefined
  description?: string | undefined
  instruction?: string | undefined
  templating?: boolean | undefined
  tools?: ToolConfig[] | undefined
  subAgents?: SubAgentConfig<Model>[] | undefined
}

/** A tool by its name, or one that was made in code: Lango's own, or a tool or toolset of ADK. */
export type ToolConfig = string | Tool | object

export const PROVIDER_TYPE_NAMES = ['gemini', 'openai', 'anthropic', 'openai-compatible', 'demo'] as const

const agentName = z
  .string({ error: 'must be a name' })
  .regex(/^[A-Za-z_][A-Za-z0-9_-]*$/, {
    error: 'must start with a letter or underscore and go on with letters, digits, underscores or hyphens',
  })
  .refine(name => name !== 'user', { error: 'must be another name: "user" is the person' })

/** The schema of a root agent. `model` is what an agent may name as its model. */
export function agentSchemaWith<Model extends string | object>(model: z.ZodType<Model, Model>) {
  const fields = {
    model: model
      .optional()
      .describe('The model as `provider/model`. Sub-agents inherit it. Default: see "The default model".'),
    description: anyText
      .optional()
      .describe('What the agent is for: other agents decide by it whether to hand over.'),
    instruction: anyText.optional().describe('What the agent is told before everything else.'),
    templating: flag
      .optional()
      .describe('Fill `{name}` in the instruction from the session’s state. Default false.'),
    tools: list(toolSchema)
      .optional()
      .describe(
        'Names of tools: built-in ones, tools of MCP servers (`server_tool`), or all of a server (`server_*`). In a program also the tools themselves. Absent: the root agent gets all that `tools.builtIn` and `mcpServers` provide, a sub-agent none.',
      ),
  }
  // The type is spelled out above, because a type cannot be inferred from a schema that contains itself.
  const subAgentSchema: z.ZodType<SubAgentConfig<Model>, SubAgentConfig<Model>> = group({
    name: agentName.describe('The agent’s name, unlike any other in the tree.'),
    ...fields,
    get subAgents() {
      return list(subAgentSchema).optional().describe('Agents below this one; each has the same keys.')
    },
  })
  return group({
    name: agentName.default('lango-agent').describe('The agent’s name.'),
    ...fields,
    subAgents: list(subAgentSchema).optional().describe('Agents that the root may hand over to.'),
    multiAgent: flag.optional().describe('Raises the default of `maxTurns` to 50. Default false.'),
    maxTurns: wholeNumber(1)
      .optional()
      .describe('Turns with tool calls in one run. Default 25, or 50 with `multiAgent`.'),
    maxDelegations: wholeNumber(1).optional().describe('Hand-overs between agents in one run. Default 32.'),
  })
}

const modelCorrectionSchema = group({
  contextWindow: wholeNumber(1).optional().describe('Tokens that fit into one request and its answer.'),
  outputLimit: wholeNumber(1).optional().describe('Tokens that one answer may have.'),
  price: group({
    input: amount().describe('Dollars per million tokens of input.'),
    output: amount().describe('Dollars per million tokens of output.'),
    cachedInput: amount().optional().describe('Dollars per million tokens read from the provider’s cache.'),
    cacheWrite: amount().optional().describe('Dollars per million tokens written to the provider’s cache.'),
  })
    .optional()
    .describe('What the model costs.'),
  profile: text().optional().describe('The name of a repair profile.'),
})

const providerSchema = group({
  type: oneOf(PROVIDER_TYPE_NAMES)
    .optional()
    .describe('Which API is spoken. May be left out when the provider’s name is a type.'),
  apiKey: text('must be a key that is not empty')
    .optional()
    .describe('Default: the vendor’s usual variable.'),
  baseUrl: webAddress().optional().describe('What the vendor’s own SDK takes as its base URL.'),
  api: oneOf(['chat', 'responses'])
    .optional()
    .describe('For `openai`. Default: Responses for OpenAI’s own models and Chat Completions for the rest.'),
  profile: profileSchema
    .optional()
    .describe('The repair profile, instead of the one that the model’s name implies.'),
  preset: text()
    .optional()
    .describe('For `openai-compatible`: a server known by name, such as `ollama` or `groq`.'),
  headers: textsByName.optional().describe('Sent with every request. Never printed.'),
  models: z
    .record(z.string(), modelCorrectionSchema, { error: 'must be an object of models' })
    .optional()
    .describe('Corrections to the model catalogue, by model name.'),
  retry: group({
    maxAttempts: wholeNumber(1, 20).optional().describe('How often a model call is tried in all.'),
    baseDelayMs: wholeNumber(0).optional().describe('The first pause between attempts; it grows from there.'),
    maxDelayMs: wholeNumber(0)
      .optional()
      .describe('The longest pause. A server that asks for more is not waited for.'),
    sleep: anyFunction<(delayMs: number, signal?: AbortSignal) => Promise<void>>()
      .optional()
      .describe('Waits between attempts. For tests.'),
    random: anyFunction<() => number>()
      .optional()
      .describe('A number from 0 to 1 for the jitter. For tests.'),
  })
    .optional()
    .describe('When a model call fails before anything of its answer was visible.'),
  idleTimeoutMs: wholeNumber(1).optional().describe('How long the provider may be silent. Default 600000.'),
  vertexai: flag.optional().describe('For `gemini`: speak to Vertex AI. Default: GOOGLE_GENAI_USE_VERTEXAI.'),
  project: text().optional().describe('For Vertex AI.'),
  location: text().optional().describe('For Vertex AI.'),
  env: environment
    .optional()
    .describe('Where the variables of the vendor are looked up. Default: the environment. Never printed.'),
})

const PROVIDER_ERROR = 'must be an object with a `type`, or a provider made in code'

const BUDGET_ERROR = 'must be a whole number of tokens, 0 for the default, or "off"'

const historySchema = group({
  maxMessageTokenBudget: z
    .union([z.int({ error: BUDGET_ERROR }).min(0, { error: BUDGET_ERROR }), z.literal('off')], {
      error: BUDGET_ERROR,
    })
    .optional()
    .describe(
      'Tokens of history that a model is sent. 0 or absent: 32000. `off`: the message limit holds instead.',
    ),
  maxMessages: wholeNumber(1).optional().describe('Default: none, or 100 when the budget is off.'),
  observationalMemory: flag.optional().describe('Makes 8000 the default budget. Default false.'),
  repair: oneOf(['repair', 'strict', 'explain'])
    .optional()
    .describe(
      'What to do with a history that a model would refuse: mend it, refuse to send it, or send it as it is and report. Default `repair`.',
    ),
})

const approvalFlags = Object.fromEntries(
  BUILT_IN_TOOL_NAMES.map(name => [name, flag.optional().describe(`Ask before \`${name}\` is run.`)]),
) as Record<BuiltInToolName, z.ZodOptional<z.ZodBoolean>>

const PRIVATE_ERROR = 'must be true, false, or a list of addresses and ranges'

const toolsSchema = group({
  builtIn: list(oneOf(BUILT_IN_TOOL_NAMES))
    .default([])
    .describe(
      'Built-in tools that are switched on. None, unless they are named here or by an agent; the command line’s own agent, in a folder without a configuration, has all of them.',
    ),
  workspace: text().default('.').describe('The folder that file tools and commands are confined to.'),
  allowPrivateNetwork: z
    .union([flag, list(text())], { error: PRIVATE_ERROR })
    .default(false)
    .describe(
      'Let `fetch_url` reach private, loopback and link-local addresses: all, or a list of addresses and ranges.',
    ),
  commandTimeoutMs: wholeNumber(1).optional().describe('How long a command may run. Default 120000.'),
  env: textsByName
    .optional()
    .describe('Variables for commands, which get no keys by themselves. Never printed.'),
  sandbox: oneOf(['auto', 'off', 'required'])
    .optional()
    .describe(
      'Run commands in a sandbox: where the machine has one, never, or not at all without. Default `auto`.',
    ),
  needsApproval: group(approvalFlags)
    .optional()
    .describe('Which built-in tools ask first. Default: `write_file`, `edit_file` and `run_command`.'),
  approvalTimeoutMs: wholeNumber(1)
    .default(300_000)
    .describe('How long an approval is waited for; then the call is refused.'),
  outputLimitTokens: wholeNumber(1)
    .optional()
    .describe('Results over this are shortened for the model. Default 16000.'),
  keepOutputs: flag
    .optional()
    .describe(
      'Keep shortened results whole and offer `read_output`. Default: when there are built-in or MCP tools.',
    ),
})

const mcpServerSchema = group({
  command: text().optional().describe('The program to start; it speaks MCP over its input and output.'),
  args: list(anyText).optional().describe('Its arguments.'),
  env: textsByName.optional().describe('Variables for it. Never printed.'),
  cwd: text().optional().describe('The folder it is started in.'),
  url: webAddress()
    .optional()
    .describe('Instead of `command`: the address of a server that speaks streamable HTTP.'),
  headers: textsByName.optional().describe('Sent with every request to `url`. Never printed.'),
  needsApproval: flag.optional().describe('Ask before every call of its tools. Default false.'),
  timeoutMs: wholeNumber(1).optional().describe('How long one call may take. Default 120000.'),
}).superRefine((server, context) => {
  if ((server.command === undefined) === (server.url === undefined)) {
    const message =
      'must have either `command` (a program to start) or `url` (a server to call), and not both'
    context.addIssue({ code: 'custom', message })
  }
})

const logSchema = group({
  level: oneOf(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe(
      'The least that is logged. `lango serve` on a terminal logs from `warn` on unless this is set.',
    ),
  content: flag.default(false).describe('Log what users, models and tools say. Keys are hidden in any case.'),
  file: text().optional().describe('Where to write. Default: standard error.'),
  pretty: flag.optional().describe('Lines for people instead of JSON. Default: when written to a terminal.'),
})

const telemetrySchema = group({
  endpoint: webAddress()
    .optional()
    .describe('An OpenTelemetry collector (OTLP over HTTP). Absent: no spans are made.'),
  headers: textsByName.optional().describe('Sent to the collector. Never printed.'),
  content: flag.default(false).describe('Put what users, models and tools say into spans.'),
  serviceName: text().default('lango').describe('The name under which the spans appear.'),
  tracerProvider: tracerProvider
    .optional()
    .describe('Instead of `endpoint`: the spans go to a provider that the application has set up.'),
  logger: logger.optional().describe('Where spans that could not be sent are reported. Default: the log.'),
})

const modelName = text('must be a model such as "openai/gpt-5.2"')

/** Keys that a configuration file and `createRuntime` have in common. */
export const sharedKeys = {
  app: text().default('lango').describe('The name under which sessions are kept.'),
  providers: z
    .record(
      z.string(),
      z.union([providerSchema, live<object>('generate', PROVIDER_ERROR)], { error: PROVIDER_ERROR }),
      {
        error: 'must be an object of providers',
      },
    )
    .default({})
    .describe(
      'By the name that models are addressed with, as in `name/model`. The usual ones need no entry.',
    ),
  rootAgent: adkAgent.optional().describe('In a program, instead of `agent`: an agent of ADK, unchanged.'),
  history: historySchema.prefault({}).describe('How much of a session a model is sent, and in which state.'),
  tools: toolsSchema.prefault({}).describe('Built-in tools.'),
  mcpServers: z
    .record(
      z.string().regex(/^[A-Za-z0-9_-]{1,32}$/, {
        error: 'must be a name of letters, digits, underscores and hyphens',
      }),
      mcpServerSchema,
      { error: 'must be an object of servers' },
    )
    .default({})
    .describe('MCP servers whose tools agents may use, by the name that prefixes their tools.'),
  telemetry: telemetrySchema.prefault({}).describe('Spans for OpenTelemetry.'),
  adk: adkSchema.optional().describe('Handed to ADK as it is.'),
}

const { app, providers, ...furtherKeys } = sharedKeys

/** The whole configuration. */
export const configSchema = group({
  $schema: z.string().optional().describe('The address of the JSON schema, for editors.'),
  app,
  store: storeAddress()
    .default(DEFAULT_STORE)
    .describe('Where sessions are kept: `sqlite:…`, `postgres://…` or `memory:`.'),
  providers,
  agent: agentSchemaWith(modelName)
    .optional()
    .describe('The agent as data. Absent: `agent.ts` beside the configuration, or a plain agent.'),
  ...furtherKeys,
  server: serverSchema.prefault({}).describe('The server with the web chat.'),
  log: logSchema.prefault({}).describe('The log.'),
}).superRefine(refuseTwoAgents)

/** One agent, not two. */
export function refuseTwoAgents(
  config: { agent?: unknown; rootAgent?: unknown },
  context: z.RefinementCtx,
): void {
  if (!config.agent || !config.rootAgent) return
  context.addIssue({
    code: 'custom',
    path: ['rootAgent'],
    message: 'must not stand beside `agent`: keep one of them',
  })
}

/** The schema of configuration files, for editors. What only a program can write is left out. */
export function configJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(configSchema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'custom') jsonSchema.not = {}
    },
  }) as Record<string, unknown>
}
