import { expect, test } from 'vitest'
import { accountTag } from './account.js'
import { type ProviderOptions, readSettings } from './provider-settings.js'
import { vendorRow } from './vendors.js'

function tagOf(options: ProviderOptions, key = 'key', secret: string | undefined = 'secret') {
  const settings = readSettings({ env: {}, ...options })
  return accountTag({ settings, row: vendorRow(settings.preset ?? settings.type), key, secret })
}

test('an account is known by its key, its entry and its address, and only within one store', () => {
  const tag = tagOf({ type: 'openai' })
  expect(tag).toMatch(/^[\w-]{16}$/)
  expect(tagOf({ type: 'openai' })).toBe(tag)
  expect(tagOf({ type: 'openai' }, 'another')).not.toBe(tag)
  expect(tagOf({ type: 'openai', id: 'team' })).not.toBe(tag)
  expect(tagOf({ type: 'openai', baseUrl: 'https://eu.api.openai.com/v1' })).not.toBe(tag)
  expect(tagOf({ type: 'openai' }, 'key', 'another secret')).not.toBe(tag)
})

test('without a secret of a store only a named account has a tag', () => {
  expect(
    accountTag({ settings: readSettings({ type: 'openai' }), row: undefined, key: 'key', secret: undefined }),
  ).toBeUndefined()
  const named = readSettings({ type: 'openai', account: 'company' })
  expect(accountTag({ settings: named, row: undefined, key: 'key', secret: undefined })).toBe(
    tagOf({ type: 'openai', account: 'company' }),
  )
})

test('a named account is the same under every key and entry, and another one on another platform', () => {
  const tag = tagOf({ type: 'openai', account: 'company' })
  expect(tagOf({ type: 'openai', account: 'company', id: 'batch' }, 'rotated')).toBe(tag)
  expect(tagOf({ type: 'azure', account: 'company' })).not.toBe(tag)
  expect(tagOf({ type: 'openai', account: 'other' })).not.toBe(tag)
})

test.each<[ProviderOptions, ProviderOptions]>([
  [
    { type: 'azure', baseUrl: 'https://a.openai.azure.com' },
    { type: 'azure', baseUrl: 'https://b.openai.azure.com' },
  ],
  [
    { type: 'bedrock', region: 'us-east-1' },
    { type: 'bedrock', region: 'eu-west-1' },
  ],
  [
    { type: 'vertex', project: 'a' },
    { type: 'vertex', project: 'b' },
  ],
  [
    { type: 'vertex', project: 'a', location: 'global' },
    { type: 'vertex', project: 'a', location: 'europe-west1' },
  ],
  [
    { type: 'gemini', vertexai: true, project: 'a' },
    { type: 'gemini', vertexai: true, project: 'b' },
  ],
])('an account of a platform is known by its place and not by its key: %o', (one, two) => {
  expect(tagOf(one, 'token of today')).toBe(tagOf(one, 'token of tomorrow'))
  expect(tagOf(one)).not.toBe(tagOf(two))
})

test('Gemini with a key and Gemini on Vertex AI are two accounts', () => {
  expect(tagOf({ type: 'gemini' })).not.toBe(tagOf({ type: 'gemini', vertexai: true }))
})
