/**
 * What a request asks for and a wire cannot send. Nothing of it is left out in silence:
 *
 * - an option that the vendor does not have is a receipt (`option-dropped`), and an error in `strict` mode;
 * - an option whose loss would change what the model may say, what it knows, or whether it must call a tool, is an error;
 * - a tool that the vendor's servers do not have is an error.
 */
import { AgentError } from '../errors.js'
import type { GenerateRequest, GenerationOptions, Repair, RepairMode, ServerTool } from './provider.js'

/** What a wire can send of a request's options and server tools. */
export interface Abilities {
  /** What becomes of an option, by its name in `generateContentConfig`. */
  option(name: string): 'sent' | 'dropped' | 'refused'
  /** Whether the vendor has a tool like this one of Gemini's. */
  hasServerTool(name: string): boolean
  /** Whether a setting of such a tool is sent. Absent: all are. */
  sendsToolSetting?(tool: string, setting: string): boolean
}

/** The abilities of a vendor that takes these options and has these tools, with these of their settings. */
export function abilitiesOf(
  options: GenerationOptions,
  sent: Readonly<Record<string, boolean>>,
  serverTools: Readonly<Record<string, unknown>> = {},
  toolSettings: Readonly<Record<string, readonly string[]>> = {},
): Abilities {
  return {
    option: name => (sent[name] === true ? 'sent' : mustNotBeLost(name, options) ? 'refused' : 'dropped'),
    hasServerTool: name => Object.hasOwn(serverTools, name),
    sendsToolSetting: (tool, setting) => toolSettings[tool]?.includes(setting) ?? false,
  }
}

/** Asks for JSON where the wire has no other way, or demands these words beside its own. */
export const JSON_IN_WORDS = 'Answer with JSON and nothing else.'

/** Asks for JSON of a schema where the wire has no other way. */
export function schemaInWords(schema: Readonly<Record<string, unknown>>): string {
  return `Answer with JSON that satisfies this schema: ${JSON.stringify(schema)}`
}

/** Which model a request goes to, and for which agent, as far as that is known. */
export interface Addressee {
  /** As `provider/model`. */
  model: string
  agent?: string | undefined
}

/** The receipts for what is left out. Throws for what must not be. */
export function reviewRequest(
  request: Pick<GenerateRequest, 'options' | 'serverTools'>,
  abilities: Abilities,
  to: Addressee,
  mode: RepairMode,
): Repair[] {
  const missing = (request.serverTools ?? []).find(({ name }) => !abilities.hasServerTool(name))
  if (missing) throw missingTool(missing, to)
  const given = optionNames(request.options ?? {})
  const refused = given.filter(name => abilities.option(name) === 'refused')
  if (refused.length > 0) throw refusedOptions(refused, to)
  const settings = (request.serverTools ?? []).flatMap(tool => unsentSettings(tool, abilities))
  const dropped = [...given.filter(name => abilities.option(name) === 'dropped'), ...settings]
  if (dropped.length === 0) return []
  if (mode === 'strict') throw droppedOptions(dropped, to)
  const detail = `${to.model} has no ${list(dropped)}: left out of the request.`
  return [{ step: 'options', kind: 'option-dropped', at: 0, detail, names: dropped }]
}

/** The settings of a server tool that the vendor's own tool does not have, as `tool.setting`. */
function unsentSettings({ name, config }: ServerTool, { sendsToolSetting }: Abilities): string[] {
  if (!sendsToolSetting) return []
  const given = Object.entries(config ?? {}).filter(([, value]) => value !== undefined)
  return given.flatMap(([setting]) => (sendsToolSetting(name, setting) ? [] : [`${name}.${setting}`]))
}

/** The options of a request by their names in `generateContentConfig`, without those that ask for nothing. */
function optionNames(options: GenerationOptions): string[] {
  const { gemini = {}, ...neutral } = options
  const names = Object.entries(neutral).flatMap(([name, value]) =>
    value === undefined || value === 'auto' ? [] : [GEMINI_NAMES[name] ?? name],
  )
  const own = Object.entries(gemini).flatMap(([name, value]) => {
    if (name === 'toolConfig') return toolConfigNames(value as Record<string, unknown>, options)
    return isSaid(name, value, options) ? [] : [name]
  })
  return [...new Set([...names, ...own])]
}

/** What of a tool configuration is no choice of a tool. A mode such as `VALIDATED` has no neutral form. */
function toolConfigNames(
  { functionCallingConfig, ...others }: Record<string, unknown>,
  { toolChoice }: GenerationOptions,
): string[] {
  const {
    mode,
    allowedFunctionNames: _names,
    ...further
  } = (functionCallingConfig ?? {}) as Record<string, unknown>
  const isOwnMode = mode !== undefined && toolChoice === undefined
  return [
    ...Object.keys(others).map(key => `toolConfig.${key}`),
    ...(isOwnMode ? ['toolConfig.functionCallingConfig.mode'] : []),
    ...Object.keys(further).map(key => `toolConfig.functionCallingConfig.${key}`),
  ]
}

const GEMINI_NAMES: Readonly<Record<string, string>> = {
  responseFormat: 'responseMimeType',
  thinking: 'thinkingConfig',
  toolChoice: 'toolConfig',
}

const ADK_LABEL = 'adk_agent_name'

/** Whether the neutral form of an option says all that Gemini's says, or the option asks for what happens anyway. */
function isSaid(name: string, value: unknown, options: GenerationOptions): boolean {
  switch (name) {
    case 'automaticContinuation':
    case 'automaticFunctionCalling':
      return true
    case 'labels':
      // ADK labels every request with its agent, for the bill of Vertex AI; nobody has asked for that.
      return Object.keys(value as object).every(label => label === ADK_LABEL)
    case 'candidateCount':
      return value === 1
    case 'store':
    case 'audioTimestamp':
    case 'enableEnhancedCivicAnswers':
      return value === false
    case 'responseModalities':
      return JSON.stringify(value).toUpperCase() === '["TEXT"]'
    case 'responseMimeType':
      return value === 'text/plain' || value === 'application/json'
    case 'responseSchema':
    case 'responseJsonSchema':
      return options.responseSchema !== undefined
    case 'responseLogprobs':
    case 'logprobs':
      return options.logprobs !== undefined || value === false
    case 'thinkingConfig':
      return options.thinking !== undefined
    default:
      return false
  }
}

/** Options whose loss changes what the model may say, what it knows, or whether it must call a tool. */
function mustNotBeLost(name: string, options: GenerationOptions): boolean {
  switch (name) {
    case 'safetySettings':
      return isStricter(options.gemini?.safetySettings)
    case 'toolConfig':
      return (
        options.toolChoice !== undefined && options.toolChoice !== 'auto' && options.toolChoice !== 'none'
      )
    case 'cachedContent':
    case 'continuationToken':
    case 'modelArmorConfig':
      return true
    default:
      return false
  }
}

/** Settings that block something. Those that block nothing may be left out: the answer is at most safer. */
function isStricter(settings: unknown): boolean {
  if (!Array.isArray(settings)) return true
  return settings.some(
    (setting: { threshold?: string }) => !['BLOCK_NONE', 'OFF'].includes(String(setting?.threshold)),
  )
}

function list(names: readonly string[]): string {
  return names.join(', ')
}

function whose({ agent }: Addressee): string {
  return agent === undefined ? 'The request' : `Agent "${agent}"`
}

function missingTool({ name }: ServerTool, to: Addressee): AgentError {
  const advice = ADVICE[name] ?? 'Use a Gemini model that has it, or remove the tool.'
  return new AgentError(
    'invalid-config',
    `${whose(to)} uses the server tool ${name}, which ${to.model} does not have. ${advice}`,
    { details: { tool: name, ...to } },
  )
}

const FUNCTION_INSTEAD = 'or give the agent a function or an MCP tool that does the same'
const ADVICE: Readonly<Record<string, string>> = {
  googleSearch: `Use a model of Gemini, of Anthropic, or of OpenAI's Responses API, ${FUNCTION_INSTEAD}.`,
  urlContext: `Use a model of Gemini or of Anthropic, ${FUNCTION_INSTEAD}.`,
  codeExecution:
    "Use a model of Gemini, of Anthropic, or of OpenAI's Responses API, or another code executor of ADK's.",
}

function refusedOptions(names: readonly string[], to: Addressee): AgentError {
  return new AgentError(
    'invalid-config',
    `${whose(to)} sets ${list(names)}, which ${to.model} does not have and which must not be left out: ` +
      'the model would be less safe, know less, or no longer have to call a tool. Use a Gemini model, or remove the option.',
    { details: { options: names, ...to } },
  )
}

function droppedOptions(names: readonly string[], to: Addressee): AgentError {
  return new AgentError(
    'invalid-config',
    `${whose(to)} sets ${list(names)}, which ${to.model} does not have. Remove the option, use another model, or set repair mode "repair" to send the request without it.`,
    { details: { options: names, ...to } },
  )
}
