/** What Gemini checks of a request before it looks at the conversation: JSON, fields, names, tools. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { firstOf, type JudgeContext, type Rule, type Violation } from '../violation.js'
import { field, type ReadContent, type ReadPart, readContents, readDeclarations } from './contents.js'
import { checkProto, type ProtoFault, type ProtoField, type ProtoMessage, type ProtoScalar } from './proto.js'

const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest'

/** G8, G12 and everything else that does not fit the message definitions. */
export const matchesSchema: Rule = (body, context) => {
  const message = context.countOnly ? countTokensRequest : generateContentRequest
  const faults = checkProto(message, body)
  if (context.quirks.has('old-vertex')) faults.push(...idFaults(body))
  if (faults.length === 0) return undefined
  const fieldViolations = faults.map(fault => ({
    ...(fault.field === '' ? {} : { field: fault.field }),
    description: fault.description,
  }))
  return {
    code: schemaCode(faults),
    status: 400,
    message: faults.map(fault => fault.description).join('\n'),
    details: [{ '@type': BAD_REQUEST, fieldViolations }],
  }
}

function schemaCode(faults: readonly ProtoFault[]): string {
  const first = faults[0]
  if (first === undefined) return 'G-schema'
  if (/function_response(\.response)?$/.test(first.field) && /response/.test(first.description)) return 'G8'
  if (/"id" at '[^']*function_(call|response)'/.test(first.description)) return 'G12'
  if (/thought_signature'/.test(first.description)) return 'G10'
  return 'G-schema'
}

/** Vertex knew no call ids before the autumn of 2026. */
function idFaults(body: JsonObject): ProtoFault[] {
  return readContents(body).flatMap(content =>
    content.parts.flatMap(part => {
      const name = part.call?.id !== undefined ? 'call' : part.response?.id !== undefined ? 'response' : ''
      if (name === '') return []
      const at = `contents[${content.index}].parts[${part.index}].function_${name}`
      const description = `Invalid JSON payload received. Unknown name "id" at '${at}': Cannot find field.`
      return [{ field: at, description }]
    }),
  )
}

export const hasContents: Rule = (body, context) => {
  const nested = objectOf(field(body, 'generateContentRequest')).contents
  if (listOf(body.contents).length > 0 || (context.countOnly && listOf(nested).length > 0)) return undefined
  return refuse('G-schema', '* GenerateContentRequest.contents: contents is not specified')
}

/** G5: a content without parts. */
export const partsPresent: Rule = body =>
  firstOf(readContents(body), content =>
    content.parts.length > 0
      ? undefined
      : refuse(
          'G5',
          `* GenerateContentRequest.contents[${content.index}].parts: contents.parts must not be empty.`,
        ),
  )

/** G6: a part without data. One that holds only a signature has been seen to be accepted. */
export const partsInitialized: Rule = body =>
  firstPart(body, (content, part) =>
    isInitialized(part)
      ? undefined
      : refuse(
          'G6',
          `* GenerateContentRequest.contents[${content.index}].parts[${part.index}].data: required oneof field 'data' must have one initialized field`,
        ),
  )

const DATA_FIELDS = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
]

function isInitialized(part: ReadPart): boolean {
  if (typeof part.signature === 'string' && part.signature !== '') return true
  return DATA_FIELDS.some(name => field(part.raw, name) !== undefined && field(part.raw, name) !== null)
}

/** G7: calls and responses have names. */
export const namesPresent: Rule = body =>
  firstPart(body, (content, part) => {
    const kind = part.response !== undefined ? 'function_response' : 'function_call'
    const named = part.response ?? part.call
    if (named === undefined || textOf(named.name) !== '') return undefined
    return refuse(
      'G7',
      `* GenerateContentRequest.contents[${content.index}].parts[${part.index}].${kind}.name: Name cannot be empty.`,
    )
  })

/** G13: names as functions may have them, in declarations and in the history. */
export const namesLegal: Rule = (body, context) => {
  const declared = firstOf(readDeclarations(body), ({ path, declaration }) =>
    isFunctionName(declaration.name, context) ? undefined : refuseName(`${path}.name`),
  )
  if (declared !== undefined || context.reading === 'lenient') return declared
  return firstPart(body, (content, part) => {
    const named = part.call ?? part.response
    if (named === undefined || textOf(named.name) === '' || isFunctionName(named.name, context)) return
    const kind = part.call !== undefined ? 'function_call' : 'function_response'
    return refuseName(`contents[${content.index}].parts[${part.index}].${kind}.name`)
  })
}

/** The error text says 64, the SDK's types say 128: both have been true. */
function isFunctionName(name: unknown, context: JudgeContext): boolean {
  const limit = context.reading === 'strict' ? 64 : 128
  return typeof name === 'string' && name.length <= limit && /^[a-zA-Z_][a-zA-Z0-9_.:-]*$/.test(name)
}

function refuseName(path: string): Violation {
  return refuse(
    'G13',
    `* GenerateContentRequest.${path}: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.`,
  )
}

/** Declarations, calling mode and answer format must go together. */
export const toolsConsistent: Rule = (body, context) => {
  const declarations = readDeclarations(body)
  const names = new Set<unknown>()
  for (const { path, declaration } of declarations) {
    const both =
      declaration.parameters !== undefined && field(declaration, 'parametersJsonSchema') !== undefined
    if (both) {
      return refuse(
        'G-tools',
        `* GenerateContentRequest.${path}: Only one of parameters and parameters_json_schema may be set.`,
      )
    }
    if (names.has(declaration.name)) {
      return refuse('G-tools', `Duplicate function declaration found: ${textOf(declaration.name)}`)
    }
    names.add(declaration.name)
  }
  return callingMode(body, declarations.length, names) ?? jsonWithTools(body, declarations.length, context)
}

function callingMode(body: JsonObject, declared: number, names: Set<unknown>): Violation | undefined {
  const config = field(objectOf(field(body, 'toolConfig')), 'functionCallingConfig')
  if (!isObject(config)) return undefined
  const mode = textOf(config.mode).toUpperCase()
  if (declared === 0 && (mode === 'ANY' || mode === 'VALIDATED')) {
    return refuse('G-tools', 'Function calling config is set without function_declarations.')
  }
  const allowed = listOf(field(config, 'allowedFunctionNames'))
  if (allowed.length > 0 && mode !== 'ANY' && mode !== 'VALIDATED') {
    return refuse('G-tools', 'Allowed function names should only be set when function calling mode is ANY.')
  }
  const unknown = allowed.find(name => !names.has(name))
  if (unknown === undefined) return undefined
  return refuse(
    'G-tools',
    `Allowed function name ${textOf(unknown)} is not found in the function declarations.`,
  )
}

function jsonWithTools(body: JsonObject, declared: number, context: JudgeContext): Violation | undefined {
  const config = objectOf(field(body, 'generationConfig'))
  if (context.profile !== 'gemini-2' || declared === 0) return undefined
  if (field(config, 'responseMimeType') !== 'application/json') return undefined
  return refuse('G-tools', "Function calling with a response mime type: 'application/json' is unsupported")
}

/** Media inside a function response is a thing of Gemini 3. */
export const responseMediaSupported: Rule = (body, context) => {
  if (context.profile !== 'gemini-2') return undefined
  return firstPart(body, (_content, part) => {
    if (listOf(part.response?.parts).length === 0) return undefined
    return refuse(
      'G16',
      'Unable to submit request because `function_response.parts` is not supported for this model. Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling',
    )
  })
}

export function firstPart(
  body: JsonObject,
  find: (content: ReadContent, part: ReadPart) => Violation | undefined,
): Violation | undefined {
  return firstOf(readContents(body), content => firstOf(content.parts, part => find(content, part)))
}

export function refuse(code: string, message: string): Violation {
  return { code, status: 400, message }
}

/** What a generateContent request may hold, as far as clients send it. */
const schema: ProtoMessage = {
  name: 'Schema',
  fields: () => ({
    ...strings('format', 'title', 'description', 'pattern'),
    type: oneOf('STRING', 'NUMBER', 'INTEGER', 'BOOLEAN', 'ARRAY', 'OBJECT', 'NULL', 'TYPE_UNSPECIFIED'),
    nullable: one('bool'),
    enum: many('string'),
    required: many('string'),
    property_ordering: many('string'),
    ...numbers('max_items', 'min_items', 'min_properties', 'max_properties', 'min_length', 'max_length'),
    ...numbers('minimum', 'maximum'),
    properties: { type: schema, map: true },
    items: one(schema),
    any_of: many(schema),
    example: one('value'),
    default: one('value'),
  }),
}

const blob: ProtoMessage = message('Blob', {
  mime_type: one('string'),
  data: one('bytes'),
  display_name: one('string'),
})

const fileData: ProtoMessage = message('FileData', strings('mime_type', 'file_uri', 'display_name'))

const functionCall: ProtoMessage = message('FunctionCall', {
  id: one('string'),
  name: one('string'),
  args: one('struct'),
})

const functionResponse: ProtoMessage = message('FunctionResponse', {
  id: one('string'),
  name: one('string'),
  response: one('struct'),
  will_continue: one('bool'),
  scheduling: one('string'),
  parts: many(
    message('FunctionResponsePart', {
      inline_data: one(blob),
      file_data: one(fileData),
    }),
  ),
})

const part: ProtoMessage = message('Part', {
  text: one('string'),
  thought: one('bool'),
  thought_signature: one('bytes'),
  inline_data: one(blob),
  file_data: one(fileData),
  function_call: one(functionCall),
  function_response: one(functionResponse),
  executable_code: one(message('ExecutableCode', strings('id', 'language', 'code'))),
  code_execution_result: one(message('CodeExecutionResult', strings('id', 'outcome', 'output'))),
  video_metadata: one('struct'),
  media_resolution: one('value'),
  part_metadata: one('struct'),
  tool_call: one('struct'),
  tool_response: one('struct'),
  audio_transcription: one('struct'),
  media_processing: one('struct'),
  speech_metadata: one('struct'),
})

const content: ProtoMessage = message('Content', { role: one('string'), parts: many(part) })

const functionDeclaration: ProtoMessage = message('FunctionDeclaration', {
  name: one('string'),
  description: one('string'),
  behavior: oneOf('UNSPECIFIED', 'BLOCKING', 'NON_BLOCKING'),
  parameters: one(schema),
  parameters_json_schema: one('value'),
  response: one(schema),
  response_json_schema: one('value'),
})

const tool: ProtoMessage = message('Tool', {
  function_declarations: many(functionDeclaration),
  ...structs('google_search', 'google_search_retrieval', 'code_execution', 'url_context'),
  ...structs('computer_use', 'file_search', 'google_maps'),
  mcp_servers: many('struct'),
  // Vertex AI.
  ...structs('retrieval', 'enterprise_web_search', 'exa_ai_search', 'parallel_ai_search'),
})

const toolConfig: ProtoMessage = message('ToolConfig', {
  function_calling_config: one(
    message('FunctionCallingConfig', {
      mode: oneOf('MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED'),
      allowed_function_names: many('string'),
      stream_function_call_arguments: one('bool'),
    }),
  ),
  retrieval_config: one('struct'),
  include_server_side_tool_invocations: one('bool'),
})

const thinkingConfig: ProtoMessage = message('ThinkingConfig', {
  include_thoughts: one('bool'),
  thinking_budget: one('number'),
  thinking_level: oneOf('THINKING_LEVEL_UNSPECIFIED', 'MINIMAL', 'LOW', 'MEDIUM', 'HIGH'),
})

const generationConfig: ProtoMessage = message('GenerationConfig', {
  ...numbers('temperature', 'top_p', 'top_k', 'candidate_count', 'max_output_tokens', 'seed', 'logprobs'),
  ...numbers('presence_penalty', 'frequency_penalty'),
  stop_sequences: many('string'),
  response_mime_type: one('string'),
  response_schema: one(schema),
  response_json_schema: one('value'),
  response_modalities: many('string'),
  response_logprobs: one('bool'),
  enable_enhanced_civic_answers: one('bool'),
  thinking_config: one(thinkingConfig),
  media_resolution: one('string'),
  speech_config: one('struct'),
  image_config: one('struct'),
  audio_transcription_config: one('struct'),
  // Vertex AI.
  audio_timestamp: one('bool'),
  model_config: one('struct'),
  routing_config: one('struct'),
})

const generateContentRequest: ProtoMessage = message('GenerateContentRequest', {
  model: one('string'),
  contents: many(content),
  system_instruction: one(content),
  tools: many(tool),
  tool_config: one(toolConfig),
  safety_settings: many(
    message('SafetySetting', {
      category: one('string'),
      method: one('string'),
      threshold: oneOf(
        'HARM_BLOCK_THRESHOLD_UNSPECIFIED',
        'BLOCK_LOW_AND_ABOVE',
        'BLOCK_MEDIUM_AND_ABOVE',
        'BLOCK_ONLY_HIGH',
        'BLOCK_NONE',
        'OFF',
      ),
    }),
  ),
  model_armor_config: one('struct'),
  output_config: one('struct'),
  generation_config: one(generationConfig),
  cached_content: one('string'),
  continuation_token: one('string'),
  labels: one('struct'),
  service_tier: one('string'),
  store: one('bool'),
})

const countTokensRequest: ProtoMessage = message('CountTokensRequest', {
  contents: many(content),
  generate_content_request: one(generateContentRequest),
  // The SDK sends these next to the contents.
  system_instruction: one(content),
  tools: many(tool),
  generation_config: one(generationConfig),
})

function message(name: string, fields: Readonly<Record<string, ProtoField>>): ProtoMessage {
  return { name, fields: () => fields }
}

function one(type: ProtoScalar | ProtoMessage): ProtoField {
  return { type }
}

function many(type: ProtoScalar | ProtoMessage): ProtoField {
  return { type, many: true }
}

function oneOf(...values: string[]): ProtoField {
  return { type: 'enum', values }
}

function strings(...names: string[]): Record<string, ProtoField> {
  return Object.fromEntries(names.map(name => [name, one('string')]))
}

function structs(...names: string[]): Record<string, ProtoField> {
  return Object.fromEntries(names.map(name => [name, one('struct')]))
}

function numbers(...names: string[]): Record<string, ProtoField> {
  return Object.fromEntries(names.map(name => [name, one('number')]))
}
