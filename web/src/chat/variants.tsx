import { useChat, useObserved } from '../chat-context.js'
import { IconButton } from '../shared/icon-button.js'
import { variantsAt } from '../variants-controller.js'

/** Which of several versions of a message and its answer is shown, and the way to the others. */
export function Variants({ userSeq }: { userSeq: number }) {
  const chat = useChat()
  const { sessionId } = useObserved(chat.thread.state)
  const variants = variantsAt(useObserved(chat.variants.state), sessionId, userSeq)
  const at = variants.findIndex(variant => variant.sessionId === sessionId)
  if (sessionId === undefined || at < 0) return null
  const step = (by: number) => {
    const next = variants[at + by]
    const choose = async (chosen: string) => {
      await chat.variants.show(chosen, sessionId)
      chat.openSession(chosen)
      await chat.sessions.refresh()
    }
    return {
      disabled: next === undefined,
      onClick: () => {
        if (next) choose(next.sessionId).catch((error: unknown) => chat.thread.showError(error))
      },
    }
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
    <div className="variants" role="group" aria-label="Versions of this message">
      <IconButton icon="chevron" className="back" label="Previous version" {...step(-1)} />
      <span>
        {at + 1} / {variants.length}
      </span>
      <IconButton icon="chevron" label="Next version" {...step(1)} />
    </div>
  )
}
