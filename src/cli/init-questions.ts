import { cancel, intro, isCancel, outro, select, text } from '@clack/prompts'
import { isAgentName } from '../base/names.js'
import { KEYED_PROVIDERS } from '../provider/vendors.js'
import type { Flags } from './command.js'
import type { InitAnswers } from './init-files.js'
import type { Io } from './io.js'

/** Asks what no flag has answered. `undefined` when cancelled. */
export async function askInit(io: Io, defaults: InitAnswers, flags: Flags): Promise<InitAnswers | undefined> {
  intro('A new agent')
  const name = flags.name ?? (await askName(defaults.name))
  if (name === undefined) return left()
  const model = flags.model ?? (await askModel(io))
  if (model === undefined) return left()
  const store = flags.store ?? (await askStore(defaults.store))
  if (store === undefined) return left()
  outro('Done.')
  return { name, model, store }
}

function left(): undefined {
  cancel('Cancelled.')
  return undefined
}

async function askName(initialValue: string): Promise<string | undefined> {
  const answer = await text({
    message: 'Name of the agent?',
    initialValue,
    validate: value =>
      isAgentName(value ?? '')
        ? undefined
        : 'Use letters, digits, underscores and hyphens, starting with a letter.',
  })
  return isCancel(answer) ? undefined : answer
}

async function askModel(io: Io): Promise<string | undefined> {
  const models = KEYED_PROVIDERS.map(({ name, model, variables }) => ({
    value: `${name}/${model}`,
    label: `${name}/${model}`,
    hint: variables.some(variable => io.env[variable]?.trim()) ? 'key is set' : `needs ${variables[0]}`,
  }))
  const answer = await select({
    message: 'Which model?',
    options: [
      { value: 'auto', label: 'Automatic', hint: 'a model whose key is set, otherwise the offline demo' },
      ...models,
      { value: 'ollama/qwen3', label: 'ollama/qwen3', hint: 'runs locally, no key needed' },
    ],
  })
  return isCancel(answer) ? undefined : answer
}

async function askStore(file: string): Promise<string | undefined> {
  const answer = await select({
    message: 'Where to store sessions?',
    options: [
      { value: file, label: file, hint: 'a file in this folder' },
      { value: '\u0024{DATABASE_URL}', label: 'PostgreSQL', hint: 'the URL in DATABASE_URL' },
      { value: 'memory:', label: 'memory:', hint: 'lost when the process exits' },
    ],
  })
  return isCancel(answer) ? undefined : answer
}
