// Transcripts that Claude Code, Codex and pi wrote (test/clients/transcripts): each is recognized, linted for the model
// that wrote it, and imported. What the file says is read here once more, with code of its own, and compared.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { messagesToProvider } from '../../src/adk/messages-to-provider.js'
import { lint } from '../../src/cli/lint.js'
import { importSessions } from '../../src/cli/sessions-import.js'
import { readHistoryFile } from '../../src/formats/history-files.js'
import type { ProviderPart } from '../../src/provider/provider.js'
import { openStore } from '../../src/store/open-store.js'
import { captured } from '../cli/doctor-output.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'

const FOLDER = join(import.meta.dirname, '../clients/transcripts')

// biome-ignore lint/suspicious/noExplicitAny: the files are read as they are, without the types under test.
type Json = any

/** What is said in a file or in messages, by kind. */
interface Facts {
  texts: string[]
  thoughts: string[]
  calls: string[]
  /** `id: text`; the text may be a part of the stored result. */
  results: string[]
  pictures: string[]
}

function nothing(): Facts {
  return { texts: [], thoughts: [], calls: [], results: [], pictures: [] }
}

const READINGS: Record<string, { profile(lines: Json[]): string; read(line: Json, facts: Facts): void }> = {
  'claude-code': {
    profile: () => 'anthropic-4.6',
    read: (line, facts) => {
      if (line.attachment?.type === 'queued_command') facts.texts.push(line.attachment.prompt)
      if (line.attachment?.type === 'file') for (const { content } of line.rendered) facts.texts.push(content)
      if (line.type === 'user' || line.type === 'assistant') readBlocks(line.message.content, facts)
    },
  },
  codex: {
    profile: () => 'openai-responses',
    read: (line, facts) => {
      if (line.type === 'compacted') facts.texts.push(line.payload.message)
      if (line.type === 'response_item') readItem(line.payload, facts)
    },
  },
  pi: {
    profile: lines => PI_PROFILES[lines.find(line => line.message?.api)?.message.api] ?? '',
    read: (line, facts) => {
      if (line.type === 'compaction') facts.texts.push(line.summary)
      if (line.type === 'message') readPiMessage(line.message, facts)
    },
  },
}

const PI_PROFILES: Record<string, string> = {
  'anthropic-messages': 'anthropic-4.6',
  'openai-responses': 'openai-responses',
  'openai-completions': 'openai-chat',
  'google-generative-ai': 'gemini-3',
}

function readBlocks(content: Json, facts: Facts): void {
  if (typeof content === 'string') return void facts.texts.push(content)
  for (const block of content) {
    if (block.type === 'text') facts.texts.push(block.text)
    else if (block.type === 'thinking') facts.thoughts.push(`${block.thinking} ${block.signature}`)
    else if (block.type === 'redacted_thinking') facts.thoughts.push(` ${block.data}`)
    else if (block.type === 'image') facts.pictures.push(block.source.data)
    else if (block.type === 'tool_use') facts.calls.push(callOf(block.id, block.name, block.input))
    else if (block.type === 'tool_result') {
      const parts =
        typeof block.content === 'string' ? [{ type: 'text', text: block.content }] : block.content
      for (const part of parts) readResult(block.tool_use_id, part, facts)
    } else throw new Error(`unknown block ${block.type}`)
  }
}

function readItem(item: Json, facts: Facts): void {
  if (item.type === 'message')
    for (const part of item.content) {
      if (part.type === 'input_image') facts.pictures.push(part.image_url.replace(/^data:[^,]*,/, ''))
      else facts.texts.push(part.text)
    }
  else if (item.type === 'reasoning') {
    const summary = item.summary.map((part: Json) => part.text).join('\n')
    facts.thoughts.push(`${summary} ${item.encrypted_content}`)
  } else if (item.type === 'function_call')
    facts.calls.push(callOf(item.call_id, item.name, JSON.parse(item.arguments)))
  else if (item.type === 'function_call_output') {
    const parts = typeof item.output === 'string' ? [{ text: item.output }] : item.output
    for (const part of parts) readResult(item.call_id, part, facts)
  } else throw new Error(`unknown item ${item.type}`)
}

function readPiMessage(message: Json, facts: Facts): void {
  if (message.role === 'system') facts.texts.push(...(Object.values(message.sections) as string[]))
  else if (message.role === 'toolResult')
    for (const part of message.content) readResult(message.toolCallId.split('|')[0], part, facts)
  else
    for (const part of message.content) {
      if (part.type === 'text') facts.texts.push(part.text)
      else if (part.type === 'image') facts.pictures.push(part.data)
      else if (part.type === 'thinking') {
        const item = /^\{/.test(part.thinkingSignature ?? '') ? JSON.parse(part.thinkingSignature) : undefined
        facts.thoughts.push(`${part.thinking} ${item ? item.encrypted_content : part.thinkingSignature}`)
      } else if (part.type === 'toolCall')
        facts.calls.push(callOf(part.id.split('|')[0], part.name, part.arguments))
      else throw new Error(`unknown part ${part.type}`)
    }
}

function readResult(id: string, part: Json, facts: Facts): void {
  if (part.type === 'image') facts.pictures.push(part.source?.data ?? part.data)
  else if (part.type === 'input_image') facts.pictures.push(part.image_url.replace(/^data:[^,]*,/, ''))
  else facts.results.push(`${id}: ${part.text}`)
}

function callOf(id: string, name: string, args: unknown): string {
  return `${id} ${name} ${JSON.stringify(args)}`
}

function factsIn(messages: readonly { parts: readonly ProviderPart[] }[]): Facts {
  const facts = nothing()
  for (const part of messages.flatMap(({ parts }) => parts)) {
    if (part.type === 'text') facts.texts.push(part.text)
    else if (part.type === 'reasoning') facts.thoughts.push(`${part.text} ${part.signature}`)
    else if (part.type === 'media' && 'data' in part) facts.pictures.push(String(part.data))
    else if (part.type === 'tool-call') facts.calls.push(callOf(part.id, part.name, part.args))
    else if (part.type === 'tool-result') {
      const { result, media = [] } = part
      facts.results.push(
        `${part.id}: ${typeof result === 'string' ? result : Object.values(result as object)[0]}`,
      )
      for (const each of media) facts.pictures.push('data' in each ? String(each.data) : '')
    }
  }
  return facts
}

/** The store joins texts of one message, and results hold all texts of their parts. */
function expectSaid(found: Facts, said: Facts): void {
  const texts = found.texts.join('\n')
  expect(said.texts.filter(text => !texts.includes(text))).toEqual([])
  expect(found.calls.toSorted()).toEqual(said.calls.toSorted())
  expect(found.thoughts.toSorted()).toEqual(said.thoughts.toSorted())
  expect(found.pictures.toSorted()).toEqual(said.pictures.toSorted())
  const missing = said.results.filter(result => {
    const [id, text] = [result.slice(0, result.indexOf(': ')), result.slice(result.indexOf(': ') + 2)]
    return !found.results.some(each => each.startsWith(`${id}: `) && each.includes(text))
  })
  expect(missing).toEqual([])
}

function linesOf(file: string): Json[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
}

async function breaksOf(file: string, profile: string): Promise<string[]> {
  const { text } = await captured(io => lint(io, file, { json: true, profile }))
  const { histories } = JSON.parse(text) as Json
  const findings = histories.flatMap((each: Json) => each.profiles.flatMap((one: Json) => one.findings))
  return [
    ...new Set<string>(
      findings.filter((each: Json) => each.severity === 'breaks').map((each: Json) => each.code),
    ),
  ]
}

const programs = Object.keys(READINGS).map(program => {
  const files = readdirSync(join(FOLDER, program)).map(name => [name] as const)
  return { program, files }
})

// One store for all imports: a new database takes longer than an import.
let folder: string
let url: string
beforeAll(async () => {
  folder = await makeFolder()
  url = `sqlite:${join(folder, 'lango.db')}?sync=normal`
})
afterAll(() => removeFolder(folder))

for (const { program, files } of programs) {
  const reading = READINGS[program] as (typeof READINGS)[string]

  test(`there are twenty transcripts of ${program} or more, with every kind of content`, () => {
    expect(files.length).toBeGreaterThanOrEqual(20)
    const all = nothing()
    for (const [name] of files)
      for (const line of linesOf(join(FOLDER, program, name))) reading.read(line, all)
    for (const kind of Object.values(all)) expect(kind.length).toBeGreaterThan(1)
  })

  test.each(files)(
    `${program} %s is recognized, linted for its model, and imported completely`,
    async name => {
      const file = join(FOLDER, program, name)
      const lines = linesOf(file)
      const said = nothing()
      for (const line of lines) reading.read(line, said)

      const { format, histories } = await readHistoryFile(file)
      expect(format).toBe(program)
      expectSaid(factsIn(histories.flatMap(each => (each.kind === 'session' ? [] : each.messages))), said)

      expect(await breaksOf(file, reading.profile(lines))).toEqual(FINDINGS[`${program}/${name}`] ?? [])

      const sessionId = `${program} ${name}`
      const { code } = await captured(io => importSessions(io, [file], { store: url, as: sessionId }))
      expect(code).toBe(0)
      const store = await openStore(url)
      const stored = await store.readMessages({ appName: 'lango', userId: 'user', sessionId })
      await store.close()
      expectSaid(factsIn(messagesToProvider(stored)), said)
    },
  )
}

/**
 * What a killed program leaves behind (Claude Code removes the call when it resumes), and the empty texts that pi keeps of
 * Gemini's streams and does not send.
 */
const FINDINGS: Record<string, string[]> = {
  'claude-code/killed-during-a-command.jsonl': ['call-without-result'],
  'codex/killed-during-a-command.jsonl': ['call-without-result'],
  'codex/killed-and-resumed.jsonl': ['call-without-result'],
  'pi/killed-during-a-command.jsonl': ['call-without-result'],
  'pi/killed-and-resumed.jsonl': ['call-without-result'],
  'pi/gemini-thinks-and-calls.jsonl': ['empty-part'],
  'pi/one-of-three-calls-fails.jsonl': ['empty-part'],
}
