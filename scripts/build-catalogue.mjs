// Writes src/provider/model-catalog-data.ts: prices from the package, the rest from catalogue-models.mjs.
// `node scripts/build-catalogue.mjs` writes; a test compares. See docs/adr/0058-prices-from-a-package.md.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { calcPrice, findProvider } from '@pydantic/genai-prices'
import { MODELS } from './catalogue-models.mjs'

/** The day whose prices are written. Prices that a vendor has announced for later are not. */
const AS_OF = '2026-11-17'

/** Our vendors by the package's names. */
const MAKERS = {
  gemini: 'google',
  openai: 'openai',
  anthropic: 'anthropic',
  mistral: 'mistral',
  deepseek: 'deepseek',
  moonshot: 'moonshotai',
  zai: 'zai',
  minimax: 'minimax',
  xai: 'x-ai',
}

/** Vendors whose models nobody else serves: their list prices hold behind every gateway. */
const CLOSED = new Set(['gemini', 'openai', 'anthropic', 'xai'])

/** Servers of the models of others. */
const HOSTS = ['groq', 'cerebras', 'fireworks']

/** Models that answer no chat, or bill something other than text. */
const OTHER_KINDS =
  /(image|audio|tts|realtime|transcribe|embed|search|live|ocr|voxtral|omni|moderation|whisper|guard|voice|davinci|ada$|babbage|curie|research|computer-use|:|@|\.ft-|^gpt-3|^gpt-4(-|$)|^gemini-(1|pro|flash-1)|^claude-([124v]|5-|3-[a-z]|.*-0$))/

/** Names that gateways made of the vendors' own. */
const ALIASES = /(\/|^gpt-\d-\d|^claude-sonnet-3|^m2-|^gpt-oss|^gemma)/

export function catalogueText() {
  const rows = [...Object.keys(MAKERS).flatMap(makerRows), ...sharedRows(), ...HOSTS.flatMap(hostRows)]
  return `// Written by scripts/build-catalogue.mjs from @pydantic/genai-prices and catalogue-models.mjs. Do not edit.
//
// One model on each line: its name, whose price it is (* of everybody who serves it), context window, output limit, what
// it can do, and dollars per million tokens of input, output, cached input, cache write and cache write for an hour.
// After > stand the tokens of input above which a whole request costs something else. - is not known.

/** The day of the prices. */
export const PRICES_AS_OF = '${AS_OF}'

export const CATALOG_LINES = \`
${rows.join('\n')}
\`
`
}

/** Vendors, names and prices of all models of text that the package knows, for the test that compares. */
export function packagePrices() {
  return Object.entries({ ...MAKERS, ...Object.fromEntries(HOSTS.map(host => [host, host])) }).flatMap(
    ([vendor, id]) => packageNames(id).map(([name]) => ({ vendor, name, price: pricesOf(id, name) })),
  )
}

/** Names whose price is our own, or the package's for another name. */
export function ownNames() {
  return Object.values(MODELS).flatMap(models =>
    Object.entries(models).flatMap(([name, row]) => (row[3] === undefined ? [] : [name])),
  )
}

function makerRows(vendor) {
  const own = MODELS[vendor]
  const names = new Map(Object.entries(own))
  for (const [name, window] of packageNames(MAKERS[vendor])) {
    const isOther = ALIASES.test(name) || (vendor === 'gemini' && !name.startsWith('gemini'))
    if (!names.has(name) && !isOther && window !== undefined)
      names.set(name, [window, Math.min(window >> 2, 8192), '-'])
  }
  const found = [...names].map(([name, [window, output, abilities, more = {}]]) => {
    const prices = more.price ? figures(more) : pricesOf(MAKERS[vendor], more.as ?? name)
    return { name, isOwn: Object.hasOwn(own, name), rest: [window, output, abilities, ...prices].join(' ') }
  })
  const scope = CLOSED.has(vendor) ? '*' : vendor
  return withoutRepetitions(found).map(({ name, rest }) => `${name} ${scope} ${rest}`)
}

/** Rows of the package that an earlier, shorter one serves with the same price. */
function withoutRepetitions(rows) {
  const priceIn = ({ rest }) => rest.split(' ').slice(3).join(' ')
  const isServed = row =>
    rows.some(
      other =>
        row.name !== other.name &&
        row.name.startsWith(other.name) &&
        DATED.test(row.name.slice(other.name.length)) &&
        priceIn(row) === priceIn(other),
    )
  return rows.filter(row => row.isOwn || !isServed(row))
}

/** As in model-catalog.ts. */
const DATED = /^([-@](\d{3,8}(-\d\d){0,2}|\d\d-\d\d(\d\d)?|latest|preview|exp|beta|customtools))+$/

function sharedRows() {
  return Object.entries(MODELS.null).map(
    ([name, [window, output, abilities]]) => `${name} * ${window} ${output} ${abilities}`,
  )
}

function hostRows(host) {
  return packageNames(host).flatMap(([name, window]) => {
    const prices = window === undefined || name.startsWith(`${host}/`) ? [] : pricesOf(host, name)
    const plain = name.slice(name.lastIndexOf('/') + 1)
    return prices.length === 0 ? [] : [`${plain} ${host} - - - ${prices.join(' ')}`]
  })
}

/** The names by which the package knows a vendor's models of text, with their windows. */
function packageNames(id) {
  const { models } = findProvider({ providerId: id })
  const isText = name => !OTHER_KINDS.test(name) && (name.includes('-') || /^o\d/.test(name))
  const names = models.flatMap(model =>
    model.deprecated ? [] : literals(model.match).map(name => [plainName(name), model.context_window]),
  )
  return [...new Map(names.filter(([name]) => isText(name)))]
}

function literals(match) {
  const { or = [], equals, starts_with: start } = match
  const own = equals ?? start
  return [...or.flatMap(literals), ...(own === undefined ? [] : [own.replace(/-$/, '')])]
}

function plainName(name) {
  const lower = name.toLowerCase()
  return lower.startsWith('claude-') ? lower.replaceAll('.', '-') : lower
}

/** The dearest prices of the day: some vendors charge by the hour, and a budget needs the worst case. */
function pricesOf(providerId, name) {
  const at = halfHours => {
    const timestamp = new Date(Date.parse(AS_OF) + halfHours * 1_800_000)
    return calcPrice({ input_tokens: 1, output_tokens: 1 }, name, { providerId, timestamp })
  }
  const first = at(0)
  const isHourly = JSON.stringify(first?.model.prices ?? []).includes('time_of_date')
  const found = (isHourly ? Array.from({ length: 48 }, (_, index) => at(index)) : [first]).flatMap(result =>
    result?.model_price.input_mtok === undefined ? [] : [result.model_price],
  )
  const base = price => (typeof price === 'number' ? price : (price?.base ?? 0))
  found.sort((one, other) => base(other.input_mtok) - base(one.input_mtok))
  return found[0] === undefined ? [] : figures(splitTiers(found[0], name))
}

const KINDS = ['input_mtok', 'output_mtok', 'cache_read_mtok', 'cache_write_mtok', 'cache_write_1h_mtok']

function splitTiers(prices, name) {
  const values = KINDS.map(kind => prices[kind])
  const tiered = values.filter(value => typeof value === 'object')
  const price = values.map(value => (typeof value === 'object' ? value.base : value))
  if (tiered.length === 0) return { price }
  const starts = new Set(tiered.flatMap(({ tiers }) => tiers.map(({ start }) => start)))
  if (starts.size > 1) throw new Error(`${name} has more than one price of long requests.`)
  const long = values.map(value => (typeof value === 'object' ? value.tiers[0].price : value))
  return { price, long: [`>${[...starts][0]}`, ...long] }
}

function figures({ price, long }) {
  return [...trimmed(price), ...(long ? trimmed(long) : [])]
}

/** `-` for what is not known, and nothing for what is not known at the end. */
function trimmed(values) {
  const last = values.findLastIndex(value => value !== undefined)
  return values.slice(0, last + 1).map(value => value ?? '-')
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../src/provider/model-catalog-data.ts', import.meta.url), catalogueText())
