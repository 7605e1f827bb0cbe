/**
 * What `lango init` writes. The files import only types, so that they also run where `lango` is installed globally
 * and not in the folder.
 */
import { SUGGESTED_KEYS } from '../provider/vendors.js'
import { READING_TOOL_NAMES } from '../tools/tool-names.js'

export type InitFormat = 'ts' | 'js' | 'json'

export interface InitAnswers {
  name: string
  /** `auto`: a model whose key is set. */
  model: string
  store: string
}

export interface InitFile {
  /** Below the folder, with forward slashes. */
  path: string
  text: string
}

/** The files of a new project. */
export function initFiles(answers: InitAnswers, format: InitFormat): InitFile[] {
  if (format === 'json') return [{ path: 'lango.config.json', text: jsonConfig(answers) }]
  const ending = format === 'ts' ? 'ts' : 'mjs'
  return [
    { path: `lango.config.${ending}`, text: configFile(answers, format) },
    // The configuration names the agent: an agent.ts next to one without an agent would be an ADK agent.
    { path: `agent.${ending}`, text: agentFile(answers, format) },
    { path: `tools/roll-dice.${ending}`, text: toolFile(format) },
  ]
}

const INSTRUCTION =
  'You are a helpful assistant. Use the tools when they help, and say briefly what you found.'

function jsonConfig({ name, model, store }: InitAnswers): string {
  const config = {
    app: name,
    store,
    agent: {
      name,
      ...(model === 'auto' ? {} : { model }),
      instruction: INSTRUCTION,
      tools: [...READING_TOOL_NAMES].sort(),
    },
  }
  return `${JSON.stringify(config, null, 2)}\n`
}

function configFile({ name, store }: InitAnswers, format: InitFormat): string {
  const body = `{
  app: ${quoted(name)},
  store: ${quoted(store)},
  agent,
}`
  const keys = `// Keys come from the environment or from .env: ${SUGGESTED_KEYS.slice(0, 3).join(', ')}, …`
  if (format === 'ts') {
    return `import type { LangoConfigInput } from 'lango'
import { agent } from './agent.ts'

${keys}
export default ${body} satisfies LangoConfigInput
`
  }
  return `import { agent } from './agent.mjs'

${keys}
/** @type {import('lango').LangoConfigInput} */
export default ${body}
`
}

function agentFile({ name, model }: InitAnswers, format: InitFormat): string {
  const modelLine =
    model === 'auto'
      ? "// The model whose key is set, or the offline demo. To choose: model: 'openai/gpt-5.2',"
      : `model: ${quoted(model)},`
  const body = `{
  name: ${quoted(name)},
  ${modelLine}
  instruction: ${quoted(INSTRUCTION)},
  tools: ['current_time', rollDice],
}`
  if (format === 'ts') {
    return `import type { LangoConfigInput } from 'lango'
import { rollDice } from './tools/roll-dice.ts'

export const agent = ${body} satisfies LangoConfigInput['agent']
`
  }
  return `import { rollDice } from './tools/roll-dice.mjs'

/** @type {import('lango').LangoConfigInput['agent']} */
export const agent = ${body}
`
}

function toolFile(format: InitFormat): string {
  const head =
    format === 'ts'
      ? "import type { Tool } from 'lango'\n\n/** A tool: what the model reads about it, and what it does. */\nexport const rollDice: Tool = "
      : "/** @type {import('lango').Tool} */\nexport const rollDice = "
  return `${head}{
  name: 'roll_dice',
  description: 'Rolls a die and returns the number.',
  parameters: {
    type: 'object',
    properties: { sides: { type: 'integer', minimum: 2, maximum: 1000, description: 'How many sides it has' } },
  },
  // The call changes nothing outside, so it may be repeated after a crash.
  effect: 'read',
  execute({ sides }) {
    const most = typeof sides === 'number' ? sides : 6
    return { sides: most, rolled: 1 + Math.floor(Math.random() * most) }
  },
}
`
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
