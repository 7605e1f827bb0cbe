/**
 * What Bedrock's Converse demands of a request, in the order in which AWS checks: fields, then the shape of the
 * conversation, then tools, then what only some models refuse (Llama, Mistral, DeepSeek), which is refused for all.
 */
import { estimateTokens, isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { firstOf, type Rule, readOnce, type Violation } from '../violation.js'

interface ReadMessage {
  readonly index: number
  readonly role: unknown
  readonly blocks: readonly JsonObject[]
  readonly calls: readonly JsonObject[]
  readonly results: readonly JsonObject[]
}

const readMessages: (body: JsonObject) => readonly ReadMessage[] = readOnce(body =>
  listOf(body.messages).map((message, index) => {
    const { role, content } = objectOf(message)
    const blocks = listOf(content).map(objectOf)
    const of = (name: string) => blocks.flatMap(block => (isObject(block[name]) ? [block[name]] : []))
    return { index, role, blocks, calls: of('toolUse'), results: of('toolResult') }
  }),
)

const TOP_LEVEL = new Set(
  `messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables
  additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig`.split(/\s+/),
)

const BLOCKS = new Set(
  'text image document video audio toolUse toolResult guardContent cachePoint reasoningContent citationsContent searchResult'.split(
    ' ',
  ),
)

export const keysKnown: Rule = body => {
  const extra = Object.keys(body).find(key => !TOP_LEVEL.has(key))
  return extra === undefined ? undefined : refuse('B-schema', `#: extraneous key [${extra}] is not permitted`)
}

/** The members of a block are a union: exactly one of them. */
export const blocksKnown: Rule = body =>
  firstOf(readMessages(body), ({ index, role, blocks }) => {
    if (role !== 'user' && role !== 'assistant') {
      return refuse(
        'B-schema',
        `1 validation error detected: Value '${String(role)}' at 'messages.${index + 1}.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]`,
      )
    }
    return firstOf(blocks, (block, at) => {
      const names = Object.keys(block)
      if (names.length === 1 && names.every(name => BLOCKS.has(name)))
        return fileFault(block, `messages.${index}.content.${at}`)
      return refuse(
        'B-schema',
        `The value at messages.${index}.content.${at} is not a valid ContentBlock object: exactly one member must be set.`,
      )
    })
  })

function fileFault(block: JsonObject, at: string): Violation | undefined {
  const [name = ''] = Object.keys(block)
  if (name !== 'image' && name !== 'document' && name !== 'video') return undefined
  const { format, source, name: title } = objectOf(block[name])
  if (textOf(format) === '' || textOf(objectOf(source).bytes) === '') {
    return refuse(
      'B-schema',
      `The ${name} at ${at} has no format or no bytes. Only bytes and S3 locations are accepted as a source.`,
    )
  }
  if (name !== 'document' || /^[A-Za-z0-9()[\]-]+( [A-Za-z0-9()[\]-]+)*$/.test(textOf(title)))
    return undefined
  return refuse(
    'B10',
    `The file name at ${at} is invalid. The file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.`,
  )
}

/** B14: over the whole request, whatever the case. */
export const documentsNamed: Rule = body => {
  const taken = new Set<string>()
  return firstOf(readMessages(body), ({ blocks }) =>
    firstOf(blocks, block => {
      const name = textOf(objectOf(block.document).name).toLowerCase()
      if (name === '' || !taken.has(name)) {
        taken.add(name)
        return undefined
      }
      return refuse('B14', "Messages can't contain duplicate document names.")
    }),
  )
}

/** B1. */
export const startsWithUser: Rule = body => {
  const [first] = readMessages(body)
  if (first?.role === 'user') return undefined
  return refuse(
    'B1',
    'A conversation must start with a user message. Try again with a conversation that starts with a user message.',
  )
}

/** B2. */
export const alternates: Rule = body =>
  firstOf(readMessages(body), ({ index, role }) =>
    index > 0 && readMessages(body)[index - 1]?.role === role
      ? refuse(
          'B2',
          'A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.',
        )
      : undefined,
  )

/** B3. */
export const endsWithUser: Rule = body =>
  readMessages(body).at(-1)?.role === 'assistant'
    ? refuse(
        'B3',
        'The model that you are using requires the last turn in the conversation to be a user message. Add a user message to the conversation and try again.',
      )
    : undefined

/** B4, in messages, in results and in `system`. */
export const nothingBlank: Rule = body => {
  const system = firstOf(listOf(body.system), (block, at) =>
    blankText(objectOf(block), `system.${at}`, 'SystemContentBlock'),
  )
  return (
    system ??
    firstOf(readMessages(body), ({ index, blocks }) => {
      if (blocks.length === 0) {
        return refuse(
          'B4',
          `The content field in the Message object at messages.${index} is empty. Add a ContentBlock object to the content field and try again.`,
        )
      }
      return firstOf(blocks, (block, at) => blankBlock(block, `messages.${index}.content.${at}`))
    })
  )
}

function blankBlock(block: JsonObject, at: string): Violation | undefined {
  if (!isObject(block.toolResult)) return blankText(block, at, 'ContentBlock')
  const content = listOf(block.toolResult.content)
  if (content.length === 0 && block.toolResult.status === 'error') {
    return refuse('B4', `The content field at ${at}.toolResult cannot be empty when status value is error.`)
  }
  return firstOf(content, (part, index) => {
    const { json } = objectOf(part)
    if (json !== undefined && !isObject(json)) {
      return refuse(
        'B9',
        `The format of the value at ${at}.toolResult.content.${index}.json is invalid. Provide a json object for the field and try again.`,
      )
    }
    return blankText(objectOf(part), `${at}.toolResult.content.${index}`, 'ToolResultContentBlock')
  })
}

function blankText(block: JsonObject, at: string, kind: string): Violation | undefined {
  if (typeof block.text !== 'string' || block.text.trim() !== '') return undefined
  return refuse(
    'B4',
    `The text field in the ${kind} object at ${at} is blank. Add text to the text field, and try again.`,
  )
}

const ID = /^[a-zA-Z0-9_.:-]{1,64}$/
const NAME = /^[a-zA-Z0-9_-]{1,64}$/

/** B5. */
export const idsLegal: Rule = body =>
  firstOf(readMessages(body), ({ index, calls, results }) => {
    const bad = [...calls, ...results].find(({ toolUseId }) => !ID.test(textOf(toolUseId)))
    if (bad)
      return constraint('B5', `messages.${index + 1}.member.content.1.member.toolUseId`, bad.toolUseId, ID)
    const unnamed = calls.find(({ name }) => !NAME.test(textOf(name)))
    if (unnamed)
      return constraint(
        'B5',
        `messages.${index + 1}.member.content.1.member.toolUse.name`,
        unnamed.name,
        NAME,
      )
    const wrong = calls.find(({ input }) => !isObject(input))
    if (wrong)
      return refuse(
        'B5',
        `The format of the value at messages.${index}.content.0.toolUse.input is invalid. Provide a json object for the field and try again.`,
      )
    const ids = calls.map(({ toolUseId }) => textOf(toolUseId))
    const repeated = ids.filter((id, at) => ids.indexOf(id) !== at)
    if (repeated.length === 0) return undefined
    return refuse(
      'B5',
      `The toolUse blocks at messages.${index}.content contain duplicate Ids: ${repeated.join(', ')}`,
    )
  })

function constraint(code: string, at: string, value: unknown, pattern: RegExp): Violation {
  return refuse(
    code,
    `1 validation error detected: Value '${String(value)}' at '${at}' failed to satisfy constraint: Member must satisfy regular expression pattern: ${pattern.source}`,
  )
}

/** B6: every call is answered in the next message, once, and nothing else is. */
export const resultsMatch: Rule = body => {
  const messages = readMessages(body)
  return (
    firstOf(messages, ({ index, results }) => {
      const asked = (messages[index - 1]?.calls ?? []).map(({ toolUseId }) => textOf(toolUseId))
      const given = results.map(({ toolUseId }) => textOf(toolUseId))
      if (given.length > asked.length) {
        return refuse(
          'B6',
          `The number of toolResult blocks at messages.${index}.content exceeds the number of toolUse blocks of previous turn.`,
        )
      }
      const missing = asked.filter(id => !given.includes(id))
      if (missing.length === 0) return undefined
      return refuse(
        'B6',
        `Expected toolResult blocks at messages.${index}.content for the following Ids: ${missing.join(', ')}`,
      )
    }) ?? openCalls(messages.at(-1))
  )
}

function openCalls(last: ReadMessage | undefined): Violation | undefined {
  if (!last || last.calls.length === 0) return undefined
  const ids = last.calls.map(({ toolUseId }) => textOf(toolUseId)).join(', ')
  return refuse(
    'B6',
    `Expected toolResult blocks at messages.${last.index + 1}.content for the following Ids: ${ids}`,
  )
}

/** B7. */
export const toolsDefined: Rule = body => {
  const tools = listOf(objectOf(body.toolConfig).tools)
  const speaks = readMessages(body).some(({ calls, results }) => calls.length + results.length > 0)
  if (tools.length === 0 && (speaks || body.toolConfig !== undefined)) {
    return refuse(
      'B7',
      'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
    )
  }
  return firstOf(tools, (tool, at) => {
    const { name, description, inputSchema } = objectOf(objectOf(tool).toolSpec)
    if (!NAME.test(textOf(name)))
      return constraint('B7', `toolConfig.tools.${at + 1}.member.toolSpec.name`, name, NAME)
    if (description === '')
      return constraint('B7', `toolConfig.tools.${at + 1}.member.toolSpec.description`, '', /[\s\S]+/)
    if (objectOf(objectOf(inputSchema).json).type === 'object') return undefined
    return refuse(
      'B7',
      `The value at toolConfig.tools.${at}.toolSpec.inputSchema.json.type must be one of the following: object.`,
    )
  })
}

/** B8: Llama's and Mistral's models. */
export const resultsAlone: Rule = (body, { reading }) =>
  reading === 'lenient'
    ? undefined
    : firstOf(readMessages(body), ({ index, results, blocks }) =>
        results.length === 0 || results.length === blocks.length
          ? undefined
          : refuse(
              'B8',
              `messages.${index}.content: Conversation blocks and tool result blocks cannot be provided in the same turn.`,
            ),
      )

/** B11: DeepSeek's models. */
export const noReasoning: Rule = (body, { reading }) =>
  reading !== 'lenient' &&
  readMessages(body).some(({ blocks }) => blocks.some(block => 'reasoningContent' in block))
    ? refuse(
        'B11',
        'User messages cannot contain reasoning content. Please remove the reasoning content and try again.',
      )
    : undefined

/** B12. */
export const fitsWindow: Rule = (body, { contextWindow }) =>
  estimateTokens(body) <= contextWindow ? undefined : refuse('B12', 'Input is too long for requested model.')

export function refuse(code: string, message: string): Violation {
  return { code, status: 400, message }
}
