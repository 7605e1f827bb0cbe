// Pictures that a provider refuses end no session: every turn is answered, the stored bytes stay as they are, and a model
// that takes the picture gets it. Over HTTP, on every profile, in either reading of disputed limits.
import { expect, onTestFinished, test } from 'vitest'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { StrictPlatform } from '../../src/testing/strict/profile.js'
import { PROFILE_FACTS, STRICT_PROFILES, type StrictProfile } from '../../src/testing/strict/profile.js'
import { providerFor } from '../support/every-profile.js'
import { jpeg, type Picture, pdf, png } from '../support/pictures.js'

type Limits = 'strict' | 'documented'

const READINGS: readonly Limits[] = ['strict', 'documented']
const MB = 1024 * 1024
const key = { appName: 'lango', userId: 'user', sessionId: 's' }

/** A PNG of so many characters of base64. */
const pngOf = (characters: number, more: Picture = {}) => png({ bytes: (characters * 3) / 4, ...more })

interface Place {
  profile: StrictProfile
  limits: Limits
  platform?: StrictPlatform
}

async function stage({ profile, limits, platform }: Place) {
  const server = await startStrictProvider({
    ...{ profile, limits, script: () => ({ text: 'ok' }) },
    ...(platform ? { platform } : {}),
  })
  const other = await startStrictProvider({ profile: 'gemini-3', script: () => ({ text: 'seen' }) })
  const options: ProviderOptions = platform
    ? { type: platform, apiKey: 'k', baseUrl: server.baseUrl, profile, region: 'r', project: 'p' }
    : providerFor(profile, server.baseUrl)
  const model = `main/${PROFILE_FACTS[profile].model}`
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { main: options, other: providerFor('gemini-3', other.baseUrl) },
    agent: { model },
  })
  onTestFinished(async () => {
    await runtime.close()
    await server.close()
    await other.close()
  })
  const say = (text: string, data?: string, mimeType = 'image/png', onModel = model) => {
    const parts = data === undefined ? [] : [{ inlineData: { mimeType, data } }]
    return runtime.runAndCollect({ sessionId: key.sessionId, text, parts, model: onModel })
  }
  return { server, other, runtime, say, last: () => JSON.stringify(server.requests.at(-1)?.body) }
}

async function storedText(runtime: Awaited<ReturnType<typeof stage>>['runtime']): Promise<string> {
  return JSON.stringify(await runtime.store.readMessages(key, { limit: 1000 }))
}

const EVERYWHERE = STRICT_PROFILES.flatMap(profile => READINGS.map(limits => ({ profile, limits })))

test.each(EVERYWHERE)('$profile, $limits: a picture that is refused, then text', async place => {
  const isLimited = /anthropic-4.6|converse|groq/.test(place.profile)
  const large = isLimited ? [pngOf(6 * MB)] : []
  for (const picture of [JPEG, png({ width: 9000 }), 'bm8gcGljdHVyZQ==', ...large]) {
    const { server, other, runtime, say, last } = await stage(place)
    const first = await say('look', picture)
    expect(first).toMatchObject({ finishReason: 'stop', text: 'ok' })
    for (const text of ['one', 'two', 'three'])
      expect(await say(text)).toMatchObject({ finishReason: 'stop', text: 'ok' })
    // A refusal is paid for once, and only where sources differ.
    expect(server.violations.length).toBeLessThanOrEqual(place.limits === 'strict' ? 1 : 0)
    expect(server.requests).toHaveLength(4 + server.violations.length)
    const kinds = first.repairs.map(({ kind }) => kind)
    // It says that it is a PNG.
    if (picture === JPEG) expect(kinds).toContain('media-retyped')
    if (!last().includes(picture))
      expect(kinds).toEqual(expect.arrayContaining([expect.stringMatching(KINDS)]))
    expect(await storedText(runtime)).toContain(picture)
    expect(await say('and you?', undefined, '', 'other/gemini-3.5-flash')).toMatchObject({ text: 'seen' })
    expect(JSON.stringify(other.requests.at(-1)?.body)).toContain(picture)
    expect(other.violations).toEqual([])
  }
})

const JPEG = jpeg({ fill: 1 })
const KINDS = /^(media-left-out|media-retyped|refused-by-provider|stub)$/

test.each(EVERYWHERE)('$profile, $limits: a screenshot a turn', async place => {
  const { server, runtime, say, last } = await stage(place)
  const screenshots: string[] = []
  for (let turn = 0; turn < 24; turn++) {
    const screenshot = png({ width: 1170, height: 2532, bytes: 120, fill: turn + 1 })
    screenshots.push(screenshot)
    expect(await say(`turn ${turn}`, screenshot)).toMatchObject({ finishReason: 'stop', text: 'ok' })
    if (/image/.test(last()) && !place.profile.startsWith('deepseek')) expect(last()).toContain(screenshot)
  }
  expect(server.violations.length).toBeLessThanOrEqual(place.limits === 'strict' ? 1 : 0)
  const stored = await storedText(runtime)
  for (const screenshot of screenshots) expect(stored).toContain(screenshot)
})

test.each(EVERYWHERE)('$profile, $limits: a document without a name in each of two turns', async place => {
  const { server, other, runtime, say, last } = await stage(place)
  const documents = [pdf({ bytes: 80 }), pdf({ bytes: 90 })]
  for (const data of documents)
    expect(await say('read', data, 'application/pdf')).toMatchObject({ finishReason: 'stop', text: 'ok' })
  expect(await say('and?')).toMatchObject({ finishReason: 'stop', text: 'ok' })
  expect(server.violations).toEqual([])
  const shown = documents.filter(data => last().includes(data))
  if (/^(gemini|anthropic|openai|converse|mistral$|xai|openrouter|compatible)/.test(place.profile))
    expect(shown).toEqual(documents)
  else expect(shown).toEqual([])
  await say('and you?', undefined, '', 'other/gemini-3.5-flash')
  const stored = await storedText(runtime)
  for (const data of documents) {
    expect(stored).toContain(data)
    expect(JSON.stringify(other.requests.at(-1)?.body)).toContain(data)
  }
})

const CLAUDES = ['anthropic-4.6', 'anthropic-5.1'] as const

test.each(CLAUDES.flatMap(profile => READINGS.map(limits => ({ profile, limits }))))(
  '$profile, $limits: 12 MB at Anthropic and 6 MB at Bedrock and Vertex are left out beforehand',
  async place => {
    const stages = [
      { picture: pngOf(12 * MB), place },
      { picture: pngOf(6 * MB), place: { ...place, platform: 'bedrock' as const } },
      { picture: pngOf(6 * MB), place: { ...place, platform: 'vertex' as const } },
    ]
    for (const { picture, place: there } of stages) {
      const { server, say, last, other } = await stage(there)
      for (const text of ['look', 'one', 'two', 'three'])
        expect(await say(text, text === 'look' ? picture : undefined)).toMatchObject({ text: 'ok' })
      expect(server.violations).toEqual([])
      expect(last()).toContain('not shown, because it has')
      await say('and you?', undefined, '', 'other/gemini-3.5-flash')
      expect(JSON.stringify(other.requests.at(-1)?.body)).toContain(picture)
    }
  },
)
