import { useChat } from '../chat-context.js'
import type { ModelChoice } from '../state/api.js'

/** Which model answers next. A provider without a key is shown with the variable that would hold it. */
export function ModelPicker() {
  const { models, model, info, setModel } = useChat()
  const selected = model ?? info.model
  if (models.length === 0) return null
  const isListed = models.some(({ reference }) => reference === selected)
  return (
    <label className="model-picker">
      <span className="visually-hidden">Model</span>
      <select value={selected} onChange={event => setModel(event.target.value)}>
        {isListed ? null : <option value={selected}>{selected || 'The agent’s own model'}</option>}
        {grouped(models).map(([provider, choices]) => (
          <optgroup key={provider} label={provider}>
            {choices.some(isUsable) ? (
              choices.filter(isUsable).map(({ reference, id }) => (
                <option key={reference} value={reference}>
                  {id}
                </option>
              ))
            ) : (
              <option disabled>{keyText(choices)}</option>
            )}
          </optgroup>
        ))}
      </select>
    </label>
  )
}

/** One line for all models of a provider whose key is missing: what would open them. */
function keyText(choices: readonly ModelChoice[]): string {
  const variable = choices.find(({ keyVariable }) => keyVariable)?.keyVariable
  const models = `${choices.length} ${choices.length === 1 ? 'model' : 'models'}`
  return variable ? `${models}: set ${variable}` : `${models}: no key`
}

function isUsable({ keyPresent }: ModelChoice): boolean {
  return keyPresent
}

/** Providers that can be used come first. */
function grouped(models: readonly ModelChoice[]): [string, ModelChoice[]][] {
  const groups = new Map<string, ModelChoice[]>()
  for (const model of models) groups.set(model.provider, [...(groups.get(model.provider) ?? []), model])
  const rank = ([, choices]: [string, ModelChoice[]]) => Number(choices.some(isUsable))
  return [...groups].sort((left, right) => rank(right) - rank(left))
}
