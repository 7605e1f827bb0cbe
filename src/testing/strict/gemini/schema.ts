/** What a generateContent request may hold, as far as clients send it. */
import type { ProtoField, ProtoMessage, ProtoScalar } from './proto.js'

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
  google_search: one('struct'),
  google_search_retrieval: one('struct'),
  code_execution: one('struct'),
  url_context: one('struct'),
  computer_use: one('struct'),
  file_search: one('struct'),
  google_maps: one('struct'),
  mcp_servers: many('struct'),
})

const toolConfig: ProtoMessage = message('ToolConfig', {
  function_calling_config: one(
    message('FunctionCallingConfig', {
      mode: oneOf('MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED'),
      allowed_function_names: many('string'),
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
})

export const generateContentRequest: ProtoMessage = message('GenerateContentRequest', {
  model: one('string'),
  contents: many(content),
  system_instruction: one(content),
  tools: many(tool),
  tool_config: one(toolConfig),
  safety_settings: many('struct'),
  generation_config: one(generationConfig),
  cached_content: one('string'),
  continuation_token: one('string'),
  labels: one('struct'),
  service_tier: one('string'),
  store: one('bool'),
})

export const countTokensRequest: ProtoMessage = message('CountTokensRequest', {
  contents: many(content),
  generate_content_request: one(generateContentRequest),
  // The SDK sends these beside the contents.
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

function numbers(...names: string[]): Record<string, ProtoField> {
  return Object.fromEntries(names.map(name => [name, one('number')]))
}
