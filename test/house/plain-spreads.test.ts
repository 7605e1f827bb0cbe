import { build } from 'vite'
import { expect, test } from 'vitest'
import { plainSpreads, plainSpreadsPlugin } from '../../scripts/plain-spreads.mjs'

test.each([
  ['{ ...one, more: 1 }', '{ ...{}, ...one, more: 1 }'],
  ['{ ...one, ...two }', '{ ...{}, ...one, ...two }'],
  ['{ ...one, more: { ...two, three } }', '{ ...{}, ...one, more: { ...{}, ...two, three } }'],
  [
    "{ ...one, text: 'ä𝄞', more: { ...two, three } }",
    "{ ...{}, ...one, text: 'ä𝄞', more: { ...{}, ...two, three } }",
  ],
])('the build writes %s as %s', (before, after) => {
  expect(plainSpreads(`const made = ${before}`)).toBe(`const made = ${after}`)
})

test.each([
  '({ ...one })',
  '({ more: 1, ...one })',
  'call(...list, 1)',
  '[...list, 1]',
  'const { one, ...rest } = made',
  'const text = "{ ...one, more }"',
  '// { ...one, more }',
])('the build leaves %s as it is', code => {
  expect(plainSpreads(code)).toBe(code)
})

test('objects with a rewritten spread are equal, with their properties in the same order', () => {
  const one = { type: 'text', more: 1, ['__proto__']: 2 }
  const source = '({ ...one, more: 3, ...(one.more ? { last: [one] } : {}), get read() { return 4 } })'
  const made = (code: string) => Object.entries(new Function('one', `return ${code}`)(one))
  expect(plainSpreads(source)).not.toBe(source)
  expect(made(plainSpreads(source))).toEqual(made(source))
})

test('spreads in code that cannot be parsed are an error with the file name', () => {
  expect(() => plainSpreads('const = { ...one, more }', 'broken.js')).toThrow(/broken\.js/)
})

test('a bundle keeps the empty spread that the build writes', async () => {
  const entry = '\0entry'
  const built = (await build({
    configFile: false,
    logLevel: 'error',
    plugins: [
      {
        name: 'entry',
        resolveId: id => (id === 'entry' ? entry : undefined),
        load: id => (id === entry ? 'export const made = one => ({ ...one, more: 1 })' : undefined),
      },
      plainSpreadsPlugin(),
    ],
    build: {
      ssr: true,
      write: false,
      target: 'node20',
      minify: false,
      rolldownOptions: { input: { entry: 'entry' } },
    },
  })) as { output: { code: string }[] }
  expect(built.output[0]?.code).toMatch(/\.\.\.\{\}, \.\.\.one/)
})
