import { useChat } from '../chat-context.js'
import { THINKING } from '../chosen-thinking.js'

/** How much the next answer is thought about, where the model can think. */
export function ThinkingPicker() {
  const { models, model, info, options, setThinking } = useChat()
  const chosen = models.find(({ reference }) => reference === (model ?? info.model))
  if (info.demo || chosen?.capabilities?.thinking === false) return null
  return (
    <label className="thinking-picker">
      <span className="visually-hidden">Thinking</span>
      <select value={options.thinking ?? ''} onChange={event => setThinking(event.target.value)}>
        <option value="">Thinking: default</option>
        {THINKING.map(level => (
          <option key={level} value={level}>
            Thinking: {level}
          </option>
        ))}
      </select>
    </label>
  )
}
