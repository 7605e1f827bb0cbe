import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lint } from '../../src/cli/lint.js'
import { readConverse } from '../../src/formats/converse-messages.js'
import { readAnthropic, readChat, readGemini, readResponses } from '../../src/formats/wire-messages.js'
import type { ProfileName } from '../../src/provider/repair/profile.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import type { SessionFinding } from '../../src/runtime/info.js'
import { judge } from '../../src/testing/strict/judge.js'
import { mintSignature } from '../../src/testing/strict/mint-signature.js'
import { captured } from '../cli/doctor-output.js'
import { jpeg, pdf, png } from '../support/pictures.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { wireBody } from './repair-judge.js'

interface RefusedBody {
  source: string
  profile: ProfileName
  cause: string
  code: string
  refusal: string
  body: Record<string, unknown>
}

function bodiesIn(name: string) {
  const folder = new URL(`../fixtures/${name}/`, import.meta.url)
  const names = readdirSync(folder).filter(each => each.endsWith('.json'))
  return names.map(each => {
    const text = readFileSync(new URL(each, folder), 'utf8').replace(
      '"$openai"',
      JSON.stringify(mintSignature('openai')),
    )
    return [each, JSON.parse(text, withFiles) as RefusedBody] as const
  })
}

/** A file in place of its description: `$jpeg`, `$png 1170x2532`, `$png 8x8 6MB`. */
function withFiles(_key: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  return value.replace(FILE, (_, type: keyof typeof FILES, width = 8, height = 8, megabytes = 0) =>
    FILES[type]({
      width: Number(width),
      height: Number(height),
      ...(megabytes ? { bytes: (Number(megabytes) * MB * 3) / 4 } : {}),
    }),
  )
}

const FILE = /\$(png|jpeg|pdf)\b(?: (\d+)x(\d+))?(?: (\d+)MB)?/g
const FILES = { png, jpeg, pdf }
const MB = 1024 * 1024

const BODIES = bodiesIn('refused-bodies')

function read({ profile, body }: RefusedBody) {
  if (profile.startsWith('gemini')) return readGemini(body)
  if (profile === 'converse') return readConverse(body)
  if (profile.startsWith('anthropic')) return readAnthropic(body)
  return profile.endsWith('-responses') ? readResponses(body) : readChat(body)
}

test.each(BODIES)('%s: the strict server refuses the request, and accepts it after repair', (_, refused) => {
  const { profile, code, body } = refused
  const judged = judge(profile, body, { opaque: true, headers: HEADERS })
  expect(judged.map(violation => violation.code)).toContain(code)
  const { messages } = repairHistory(read(refused), profile)
  expect(judge(profile, wireBody(messages, profile), { opaque: true })).toEqual([])
})

/** The version in which a request may still say its temperature. */
const HEADERS = {
  'anthropic-version': '2023-06-01',
  'anthropic-beta': 'thinking-binding-controls-2026-08-01',
}

async function lintBody(body: unknown, profile: string) {
  const file = join(await temporaryFolder(), 'body.json')
  await writeFile(file, JSON.stringify(body))
  const { code, text } = await captured(io => lint(io, file, { profile, json: true }))
  const findings = JSON.parse(text).histories[0].profiles[0].findings as SessionFinding[]
  return { code, findings, broken: findings.filter(({ severity }) => severity === 'breaks') }
}

test.each(BODIES)(
  '%s: lint names the cause of the refusal once, in the words of the vendor',
  async (_, refused) => {
    const { code, broken } = await lintBody(refused.body, refused.profile)
    expect(code).toBe(3)
    expect([...new Set(broken.map(finding => finding.code))]).toEqual([refused.cause])
    expect(broken[0]?.message).toContain(refused.refusal)
    expect(broken[0]?.repair).not.toBe('')
  },
)

const DISPUTED = bodiesIn('disputed-bodies')

test.each(DISPUTED)(
  '%s: where sources differ lint names the cause and calls nothing broken, and a refusal is learnt from',
  async (_, { profile, code, cause, body, ...refused }) => {
    expect(judge(profile, body, { opaque: true })).toEqual([])
    const judged = judge(profile, body, { opaque: true, limits: 'strict' })
    expect(judged.map(violation => violation.code)).toEqual([code])
    expect(judged[0]?.message).toContain(refused.refusal)
    const { findings, ...linted } = await lintBody(body, profile)
    expect(linted).toEqual({ code: 0, broken: [] })
    expect(findings.map(finding => finding.code)).toEqual([cause])
    const { messages } = repairHistory(read({ profile, code, cause, body, ...refused }), profile, {
      mediaLimits: 'strict',
    })
    expect(judge(profile, wireBody(messages, profile), { opaque: true, limits: 'strict' })).toEqual([])
  },
)

const ACCEPTED = bodiesIn('accepted-bodies')

test.each(ACCEPTED)('%s: lint reports nothing for an accepted request', async (_, { body, profile }) => {
  expect(await lintBody(body, profile)).toMatchObject({ code: 0, broken: [] })
})
