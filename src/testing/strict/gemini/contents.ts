/** A Gemini request as the rules read it: camel case and snake case alike, each content with its kind. */
import { isObject, type JsonObject, listOf, objectOf } from '../json.js'
import { readOnce } from '../violation.js'
import { snakeCase } from './proto.js'

export interface ReadContent {
  readonly index: number
  readonly role: unknown
  readonly parts: readonly ReadPart[]
  readonly calls: readonly ReadPart[]
  readonly responses: readonly ReadPart[]
}

export interface ReadPart {
  readonly index: number
  readonly raw: JsonObject
  readonly text: unknown
  readonly call: JsonObject | undefined
  readonly response: JsonObject | undefined
  readonly signature: unknown
}

export const readContents: (body: JsonObject) => readonly ReadContent[] = readOnce(body =>
  listOf(body.contents).map((content, index) => {
    const parts = listOf(objectOf(content).parts).map(readPart)
    return {
      index,
      role: objectOf(content).role,
      parts,
      calls: parts.filter(part => part.call !== undefined),
      responses: parts.filter(part => part.response !== undefined),
    }
  }),
)

function readPart(part: unknown, index: number): ReadPart {
  const raw = objectOf(part)
  const call = field(raw, 'functionCall')
  const response = field(raw, 'functionResponse')
  return {
    index,
    raw,
    text: raw.text,
    call: isObject(call) ? call : undefined,
    response: isObject(response) ? response : undefined,
    signature: field(raw, 'thoughtSignature'),
  }
}

/** A field under its camel-case name or its snake-case one. */
export function field(object: JsonObject, camel: string): unknown {
  const value = object[camel]
  return value !== undefined ? value : object[snakeCase(camel)]
}

/** Everything declared as a function, with its place in the request. */
export function readDeclarations(body: JsonObject): { path: string; declaration: JsonObject }[] {
  return listOf(body.tools).flatMap((tool, toolIndex) =>
    listOf(field(objectOf(tool), 'functionDeclarations')).map((declaration, index) => ({
      path: `tools[${toolIndex}].function_declarations[${index}]`,
      declaration: objectOf(declaration),
    })),
  )
}
