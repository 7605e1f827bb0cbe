import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readAnthropic, readChat, readGemini, readResponses } from '../../src/formats/wire-messages.js'
import { findingsOf } from '../../src/provider/repair/finding.js'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { judge } from '../../src/testing/strict/judge.js'
import { mintSignature } from '../../src/testing/strict/mint-signature.js'
import { strictJudge } from './repair-judge.js'

interface RefusedBody {
  source: string
  profile: ProfileName
  cause: string
  code: string
  refusal: string
  body: Record<string, unknown>
}

const folder = new URL('../fixtures/refused-bodies/', import.meta.url)
const BODIES = readdirSync(folder)
  .filter(name => name.endsWith('.json'))
  .map(name => {
    const text = readFileSync(new URL(name, folder), 'utf8').replace(
      '"$openai"',
      JSON.stringify(mintSignature('openai')),
    )
    return [name, JSON.parse(text) as RefusedBody] as const
  })

function read({ profile, body }: RefusedBody) {
  if (profile.startsWith('gemini')) return readGemini(body)
  if (profile.startsWith('anthropic')) return readAnthropic(body)
  return profile.endsWith('-responses') ? readResponses(body) : readChat(body)
}

test.each(BODIES)('%s: the strict server refuses it, and accepts what repair makes of it', (_, refused) => {
  const { profile, code, body } = refused
  expect(judge(profile, body).map(violation => violation.code)).toContain(code)
  const { messages } = repairHistory(read(refused), profile)
  expect(strictJudge(messages, profile)).toEqual([])
})

// What the reader of a body cannot see yet, or what is no part of the history.
const NOT_IN_THE_HISTORY = new Set(['claude-forced-tool.json', 'chat-image-in-tool-message.json'])

test.each(BODIES.filter(([name]) => !NOT_IN_THE_HISTORY.has(name)))(
  '%s: repair names the cause',
  (_, refused) => {
    const { repairs } = repairHistory(read(refused), refused.profile)
    const causes = findingsOf(repairs, PROFILES[refused.profile]).map(finding => finding.code)
    expect(causes).toContain(refused.cause)
  },
)
