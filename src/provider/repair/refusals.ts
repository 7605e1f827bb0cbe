/**
 * What providers say to a history that breaks a rule: the label under which `docs/strict-servers.md` lists
 * the error, and the provider's own message, shortened where they repeat ids and indices. By profile, and by
 * vendor for what its profiles share.
 */
export const REFUSALS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  gemini: {
    'unknown-role': 'G4: “Please use a valid role: user, model.”',
    'misplaced-system': 'G4: “Please use a valid role: user, model.”',
    'unreadable-part': "G6: “required oneof field 'data' must have one initialized field”",
    'empty-part': "G6: “required oneof field 'data' must have one initialized field”",
    'empty-message': 'G5: “contents.parts must not be empty.”',
    'misplaced-part': 'G11 or an empty candidate: results and text in one content.',
    'orphan-result':
      'G2: “Please ensure that function response turn comes immediately after a function call turn.”',
    'early-result':
      'G2: “Please ensure that function response turn comes immediately after a function call turn.”',
    'distant-result':
      'G2: “Please ensure that function response turn comes immediately after a function call turn.”',
    'call-without-result':
      'G3: “Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.”',
    'duplicate-result':
      'G3: “Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.”',
    'scattered-results':
      'G3: “Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.”',
    'no-user-first':
      'G1: “Please ensure that function call turn comes immediately after a user turn or after a function response turn.”',
    'repeated-role':
      'G1 where a call follows: “Please ensure that function call turn comes immediately after a user turn or after a function response turn.”',
    'unnamed-result': 'G7: “function_response.name: Name cannot be empty.”',
    'result-form':
      "G8: “Invalid value at 'function_response.response' (type.googleapis.com/google.protobuf.Struct)”",
    'malformed-arguments':
      "G8: “Invalid value at 'function_call.args' (type.googleapis.com/google.protobuf.Struct)”",
    'missing-signature': 'G9: “Function call is missing a thought_signature in functionCall parts.”',
    'foreign-signature': 'G10: “Corrupted thought signature.”',
    'foreign-reasoning': 'G10: “Corrupted thought signature.”',
    'assistant-last': 'G11: “Requests ending with a model turn are not supported.”',
    'name-form': 'G13: “Invalid function name. Must start with a letter or an underscore.”',
    'misplaced-media': 'G3 on older models: media inside a function response.',
  },
  openai: {
    'unknown-role':
      "C8: “Invalid value. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.”",
    'orphan-result':
      "C2: “messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.”",
    'early-result':
      "C2: “messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.”",
    'duplicate-result':
      "C2: “messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.”",
    'misplaced-part':
      "C2: “messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.”",
    'call-without-result':
      "C1: “An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.”",
    'distant-result':
      "C1: “An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.”",
    'lost-result-id':
      "C3: “Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.”",
    'missing-id':
      "C3: “Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.”",
    'id-form': 'C4: “string too long. Expected a string with maximum length 40”',
    'name-form': "C5: “Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.”",
    'empty-message': "C6: “Invalid value for 'content': expected a string, got null.”",
    'misplaced-media': "C9: “Image URLs are only allowed for messages with role 'user'”",
  },
  'openai-responses': {
    'call-without-result': 'R1: “No tool output found for function call”',
    'orphan-result': 'R2: “No tool call found for function call output with call_id”',
    'early-result': 'R2: “No tool call found for function call output with call_id”',
    'duplicate-result': 'R2: “No tool call found for function call output with call_id”',
    'duplicate-id': 'R2: “No tool call found for function call output with call_id”',
    'reasoning-without-follower':
      "R3: “Item of type 'reasoning' was provided without its required following item.”",
    'foreign-reasoning': 'R6: “Encrypted content could not be decrypted or parsed.”',
    'id-form': 'R8: “string too long. Expected a string with maximum length 64”',
  },
  anthropic: {
    'call-without-result': 'A1: “`tool_use` ids were found without `tool_result` blocks immediately after”',
    'distant-result': 'A1: “`tool_use` ids were found without `tool_result` blocks immediately after”',
    'scattered-results': 'A1: “`tool_use` ids were found without `tool_result` blocks immediately after”',
    'text-after-call': 'A1: “`tool_use` ids were found without `tool_result` blocks immediately after”',
    'misplaced-part': 'A1: “`tool_use` ids were found without `tool_result` blocks immediately after”',
    'orphan-result': 'A2: “unexpected `tool_use_id` found in `tool_result` blocks”',
    'early-result': 'A2: “unexpected `tool_use_id` found in `tool_result` blocks”',
    'duplicate-result': 'A3: “each tool_use must have a single result.”',
    'duplicate-id': 'A4: “`tool_use` ids must be unique”',
    'id-form': "A5: “String should match pattern '^[a-zA-Z0-9_-]+$'”",
    'missing-id': "A5: “String should match pattern '^[a-zA-Z0-9_-]+$'”",
    'lost-result-id': "A5: “String should match pattern '^[a-zA-Z0-9_-]+$'”",
    'empty-part': 'A6: “text content blocks must be non-empty”',
    'empty-message': 'A7: “all messages must have non-empty content”',
    'assistant-last':
      'A8: “This model does not support assistant message prefill. The conversation must end with a user message.”',
    'trailing-space': 'A9: “final assistant content cannot end with trailing whitespace”',
    'reasoning-without-follower': 'A10: “The final block in an assistant message cannot be `thinking`.”',
    'foreign-reasoning': 'A11: “Invalid `signature` in `thinking` block”',
    'unbound-reasoning': 'A25: “The block is bound to a different conversation.”',
    'unpaired-part': 'A27: “tool use was found without a corresponding tool_result block”',
    'misplaced-system': 'A14: “Unexpected role "system".”',
    'unknown-role': 'A14: “Unexpected role.”',
    'no-user-first': 'A17: “first message must use the "user" role”',
    'foreign-part': "A20: “server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'”",
    'name-form': "A21: “String should match pattern '^[a-zA-Z0-9_-]{1,128}$'”",
    'wrong-media-type': 'A41: “Image does not match the provided media type”',
    'media-limit': 'A44: “At least one of the image dimensions exceed max allowed size”',
  },
  mistral: {
    'id-form': 'M1: “Tool call id must be a-z, A-Z, 0-9, with a length of 9.”',
    'missing-id': 'M1: “Tool call id must be a-z, A-Z, 0-9, with a length of 9.”',
    'call-without-result': 'M2: “Not the same number of function calls and responses”',
    'distant-result': 'M2: “Not the same number of function calls and responses”',
    'no-user-first': 'M2: “Not the same number of function calls and responses”',
    'assistant-last':
      'M3: “Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant”',
    'orphan-result': "M4: “Unexpected role 'tool' after role 'system'”",
    'misplaced-system': "M4: “Unexpected role 'system' after role 'tool'”",
    'empty-message': 'M5: “Assistant message must have either content or tool_calls, but not none.”',
    'empty-part': 'M5: “Assistant message must have either content or tool_calls, but not none.”',
    'duplicate-result': 'M6: “Unexpected tool call id in tool results”',
    'duplicate-id': 'M6: “Duplicate tool call id in assistant message”',
    'name-form':
      'M7: “Function name must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.”',
  },
  deepseek: {
    'missing-reasoning': 'X1: “The `reasoning_content` in the thinking mode must be passed back to the API.”',
    'call-without-result': 'X2: “insufficient tool messages following tool_calls message”',
    'distant-result': 'X2: “insufficient tool messages following tool_calls message”',
    'orphan-result':
      "X3: “Messages with role 'tool' must be a response to a preceding message with 'tool_calls'”",
  },
  bedrock: {
    'no-user-first': 'B1: “A conversation must start with a user message.”',
    'repeated-role': 'B2: “A conversation must alternate between user and assistant roles.”',
    'assistant-last': 'B3: “requires the last turn in the conversation to be a user message”',
    'empty-part': 'B4: “The text field in the ContentBlock object is blank.”',
    'empty-message': 'B4: “The content field in the Message object is empty.”',
    'id-form': 'B5: “Member must satisfy regular expression pattern”',
    'missing-id': 'B5: “Member must satisfy regular expression pattern”',
    'name-form': 'B5: “Member must satisfy regular expression pattern”',
    'duplicate-id': 'B5: “The toolUse blocks contain duplicate Ids”',
    'malformed-arguments': 'B5: “Provide a json object for the field and try again.”',
    'call-without-result': 'B6: “Expected toolResult blocks for the following Ids”',
    'distant-result': 'B6: “Expected toolResult blocks for the following Ids”',
    'scattered-results': 'B6: “Expected toolResult blocks for the following Ids”',
    'orphan-result':
      'B6: “The number of toolResult blocks exceeds the number of toolUse blocks of previous turn.”',
    'early-result':
      'B6: “The number of toolResult blocks exceeds the number of toolUse blocks of previous turn.”',
    'duplicate-result':
      'B6: “The number of toolResult blocks exceeds the number of toolUse blocks of previous turn.”',
    'misplaced-part':
      'B8 on some models: “Conversation blocks and tool result blocks cannot be provided in the same turn.”',
    'wrong-media-type': 'B21: “Image does not match the provided media type”',
    'media-limit': 'B25: “The number of documents exceeds the maximum”',
    'foreign-reasoning': 'B11 on some models: “User messages cannot contain reasoning content.”',
  },
  moonshot: { 'empty-part': 'X18: “the message at position N with role must not be empty”' },
  minimax: {
    'empty-part': 'X18: “chat content is empty (2013)”',
    'orphan-result': "X17: “tool result's tool id not found (2013)”",
    'distant-result': 'X17: “tool call result does not follow tool call (2013)”',
  },
  qwen: {
    'orphan-result':
      'X17: “messages with role "tool" must be a response to a preceeding message with "tool_calls".”',
    'empty-part': 'X18: “content should not be empty”',
  },
  zai: { 'empty-part': 'X18: “1214”' },
  'compatible-gemini': {
    'missing-signature': 'G9: “Function call is missing a thought_signature in functionCall parts.”',
    'foreign-signature': 'G10: “Corrupted thought signature.”',
  },
  openrouter: { 'foreign-reasoning': 'X16: “Invalid `signature` in `thinking` block”' },
  'openrouter-gemini': {
    'missing-signature':
      'X14: “Gemini models require OpenRouter reasoning details to be preserved in each request.”',
  },
  groq: {
    'foreign-reasoning': "X4: “property 'reasoning_content' is unsupported”",
    'media-limit': 'X33: “Too many images provided. This model supports up to 5 images”',
  },
  vllm: {
    'malformed-arguments': 'X5: “Unterminated string starting at”',
    'repeated-role': 'X6: “Conversation roles must alternate user/assistant/user/assistant/...”',
    'no-user-first': 'X6: “Conversation roles must alternate user/assistant/user/assistant/...”',
  },
  ollama: {
    'empty-message': 'X7: “invalid message content type: <nil>”',
    'malformed-arguments': 'X8: “invalid tool call arguments”',
  },
}
