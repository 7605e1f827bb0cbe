// Writes docs/you-have-a-400.md from the table of refusals, so that the page and lint agree.
// `node --import tsx scripts/build-refusal-docs.mjs`; a test compares the result.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Vendors in the order of the page, with the name that people search for. */
const VENDORS = [
  ['gemini', 'Gemini: 400 INVALID_ARGUMENT'],
  ['openai', 'OpenAI, Chat Completions: 400 invalid_request_error'],
  ['openai-responses', 'OpenAI, Responses: 400 invalid_request_error'],
  ['anthropic', 'Claude: 400 invalid_request_error'],
  ['bedrock', 'Bedrock, Converse: 400 ValidationException'],
  ['mistral', 'Mistral: 400 and 422'],
  ['deepseek', 'DeepSeek: 400'],
  ['moonshot', 'Kimi (Moonshot): 400'],
  ['minimax', 'MiniMax: 400 and 2013'],
  ['qwen', 'Qwen (DashScope): 400'],
  ['zai', 'GLM (Z.ai): 400 and 1214'],
  ['compatible-gemini', "Gemini 3 behind an API like OpenAI's: 400"],
  ['openrouter', 'OpenRouter: 400'],
  ['openrouter-gemini', 'Gemini 3 through OpenRouter: 400'],
  ['groq', 'Groq: 400'],
  ['vllm', 'vLLM, LM Studio, llama.cpp: 400'],
  ['ollama', 'Ollama: 400'],
]

/** What to change in a program that sends such a history itself, by the code of the finding. */
const CURES = {
  'unknown-role': 'Use the roles of the API; write other speakers into the text.',
  'misplaced-system': 'Put instructions at the beginning, or send a later one as a user message.',
  'unreadable-part': 'Send only the kinds of parts that the API lists, each with its field set.',
  'empty-part': 'Leave out parts without text.',
  'empty-message': 'Leave out messages without content, or write what they stood for.',
  'misplaced-part': 'Send results in a message of their own, before the text of the user.',
  'orphan-result':
    'Cut histories between turns, never between a call and its result. Send a result without a call as text.',
  'early-result': 'Put the result directly after its call.',
  'distant-result': 'Put all results directly after the message with their calls, before anything else.',
  'call-without-result':
    'Store a result for every call, also when the tool failed, was refused or was cut off.',
  'duplicate-result':
    'Keep one result for each call. A repeated execution belongs into the same result, or into text.',
  'scattered-results': 'Put the results of parallel calls into one message, as many as there were calls.',
  'no-user-first': 'Begin with a message of the user. After a cut, go back to the last one.',
  'repeated-role': 'Join messages of one role that follow each other.',
  'unnamed-result': 'Set the name of the tool on every result.',
  'result-form': 'Send an object as result: wrap texts and lists, such as { "output": … }.',
  'malformed-arguments':
    'Send the arguments as an object, or as JSON text of one; repair text that was cut off.',
  'missing-signature':
    'Send each call back with the signature that it came with; calls of other models need the documented stand-in.',
  'foreign-signature': 'Leave out the signatures of other vendors.',
  'foreign-reasoning': 'Leave out the reasoning of other vendors and models.',
  'assistant-last': 'End with a message of the user or with tool results.',
  'name-form': 'Use letters, digits, underscores and dashes in the names of tools.',
  'misplaced-media': 'Send images and files in a message of the user.',
  'lost-result-id': 'Set the id of the call on every result.',
  'missing-id': 'Set an id on every call, and the same one on its result.',
  'id-form': 'Keep the vendor’s own ids, or map them to its form.',
  'duplicate-id': 'Give every call of a history an id of its own.',
  'reasoning-without-follower':
    'Send reasoning together with the answer or call that it led to, or leave it out.',
  'text-after-call': 'Put text before the calls of a message.',
  'trailing-space': 'Trim the last text.',
  'unbound-reasoning':
    'Send system, tools and earlier messages exactly as before, or leave out the thinking that follows the change.',
  'unpaired-part': 'Send a server tool’s question and its result together.',
  'foreign-part': 'Leave out parts that another vendor’s server tools made.',
  'wrong-media-type': 'Send each file under the type of its bytes: the first bytes tell it.',
  'media-limit': 'Send smaller or fewer pictures and documents, and leave out the oldest.',
  'missing-reasoning': 'Send the reasoning back with every message that it came with.',
}

/** The page. `textOf` says what is wrong, by code. */
export function renderRefusalDocs({ refusals, textOf }) {
  const missing = new Set(
    Object.values(refusals).flatMap(codes => Object.keys(codes).filter(code => !CURES[code])),
  )
  if (missing.size > 0) throw new Error(`No cure for: ${[...missing].join(', ')}. Add one to CURES.`)
  const unknown = Object.keys(refusals).filter(vendor => !VENDORS.some(([name]) => name === vendor))
  if (unknown.length > 0) throw new Error(`No heading for: ${unknown.join(', ')}. Add one to VENDORS.`)
  return [
    INTRODUCTION,
    ...VENDORS.flatMap(([vendor, heading]) => [
      `## ${heading}\n`,
      ...errorsOf(refusals[vendor] ?? {}, textOf),
    ]),
  ].join('\n')
}

/** One section for each error text, with all causes that lead to it. */
function errorsOf(codes, textOf) {
  const byText = new Map()
  for (const [code, words] of Object.entries(codes)) byText.set(words, [...(byText.get(words) ?? []), code])
  return [...byText].map(([words, causes]) => {
    const [, label, text] = /^([A-Z]\d+)[^:]*: (.*)$/s.exec(words) ?? ['', '', words]
    const heading = text.replaceAll(/[“”]/g, '')
    const rows = causes.map(code => `| \`${code}\` | ${textOf(code)} | ${CURES[code]} |`)
    return `### ${heading.replaceAll('<', '&lt;')}\n\n| lint says | cause | cure |\n|---|---|---|\n${rows.join('\n')}\n\n${label ? `Rule ${label} of the [strict servers](strict-servers.md).\n` : ''}`
  })
}

const INTRODUCTION = `# You have a 400

<!-- Written by scripts/build-refusal-docs.mjs from the table of refusals. Change the table, not this page. -->

A provider refused a request, and every later message of that conversation is refused too. The history is broken: the request that worked yesterday contains a call without a result, a signature of another vendor, or a cut in the wrong place.

Find out what is wrong, with the body that was refused or with an export of any framework that [\`lango lint\`](cli.md#lango-lint) knows:

\`\`\`sh
npx lango lint request.json        # names the cause, the vendor's error and the cure
npx lango lint request.json --output healed.json   # also writes the repaired request
npx lango demo                     # the seven most frequent ones, refused and healed
\`\`\`

Heal it, without a change of your program:

\`\`\`ts
import { lintHistory, repairHistory, type ProviderMessage } from 'lango/provider'

export function heal(history: ProviderMessage[]): ProviderMessage[] {
  for (const { code, message } of lintHistory(history, 'gemini-3')) console.log(code, message)
  return repairHistory(history, 'gemini-3').messages
}
\`\`\`

In a runtime of Lango and under \`historyGuard()\` with ADK's own runner this happens before every request, with a receipt for each change: [Library](library.md), [ADK](adk.md).

The errors below are in the words of the vendors, shortened where they repeat ids and positions.
`

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { REFUSALS } = await import('../src/provider/repair/refusals.ts')
  const { findingText } = await import('../src/provider/repair/finding.ts')
  const page = renderRefusalDocs({ refusals: REFUSALS, textOf: findingText })
  writeFileSync(new URL('../docs/you-have-a-400.md', import.meta.url), page)
}
