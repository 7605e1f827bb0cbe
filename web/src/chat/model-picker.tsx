import { useChat } from '../chat-context.js'
import type { ModelChoice } from '../state/api.js'

/** Which model answers next. Models without a key are shown with the variable that would hold it. */
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
            {choices.map(choice => (
              <option key={choice.reference} value={choice.reference} disabled={!choice.keyPresent}>
                {labelOf(choice)}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  )
}

function labelOf({ id, keyPresent, keyVariable }: ModelChoice): string {
  if (keyPresent) return id
  return keyVariable ? `${id} (set ${keyVariable})` : `${id} (no key)`
}

/** Providers that can be used come first. */
function grouped(models: readonly ModelChoice[]): [string, ModelChoice[]][] {
  const groups = new Map<string, ModelChoice[]>()
  for (const model of models) groups.set(model.provider, [...(groups.get(model.provider) ?? []), model])
  const isUsable = ([, choices]: [string, ModelChoice[]]) => choices.some(({ keyPresent }) => keyPresent)
  return [...groups].sort((left, right) => Number(isUsable(right)) - Number(isUsable(left)))
}
