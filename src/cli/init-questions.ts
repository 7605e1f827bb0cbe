import { cancel, intro, isCancel, outro, select, text } from '@clack/prompts'
import { KEYED_PROVIDERS } from '../config/default-model.js'
import type { Flags } from './command.js'
import type { InitAnswers } from './init-files.js'

/** Asks what no flag has answered. `undefined` when the person left. */
export async function askInit(defaults: InitAnswers, flags: Flags): Promise<InitAnswers | undefined> {
  intro('A new agent')
  const name = flags.name ?? (await askName(defaults.name))
  if (name === undefined) return left()
  const model = flags.model ?? (await askModel())
  if (model === undefined) return left()
  const store = flags.store ?? (await askStore(defaults.store))
  if (store === undefined) return left()
  outro('Thank you.')
  return { name, model, store }
}

function left(): undefined {
  cancel('Left.')
  return undefined
}

async function askName(initialValue: string): Promise<string | undefined> {
  const answer = await text({
    message: 'What is the agent called?',
    initialValue,
    validate: value =>
      /^[A-Za-z_][A-Za-z0-9_-]*$/.test(value ?? '') && value !== 'user'
        ? undefined
        : 'Letters, digits, underscores and hyphens, beginning with a letter.',
  })
  return isCancel(answer) ? undefined : answer
}

async function askModel(): Promise<string | undefined> {
  const models = KEYED_PROVIDERS.map(({ name, model, variables }) => ({
    value: `${name}/${model}`,
    label: `${name}/${model}`,
    hint: variables.some(variable => process.env[variable]?.trim()) ? 'key is set' : `needs ${variables[0]}`,
  }))
  const answer = await select({
    message: 'Which model answers?',
    options: [
      { value: 'auto', label: 'Whichever has a key', hint: 'without one, the offline demo' },
      ...models,
      { value: 'ollama/qwen3', label: 'ollama/qwen3', hint: 'on this machine, no key' },
    ],
  })
  return isCancel(answer) ? undefined : answer
}

async function askStore(file: string): Promise<string | undefined> {
  const answer = await select({
    message: 'Where are sessions kept?',
    options: [
      { value: file, label: file, hint: 'a file here' },
      { value: '\u0024{DATABASE_URL}', label: 'PostgreSQL', hint: 'the address in DATABASE_URL' },
      { value: 'memory:', label: 'memory:', hint: 'forgotten when the program ends' },
    ],
  })
  return isCancel(answer) ? undefined : answer
}
