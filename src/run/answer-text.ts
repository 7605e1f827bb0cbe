/** The little of an ADK event that the answer is made of. */
export interface SpokenEvent {
  author?: string | undefined
  partial?: boolean | undefined
  content?:
    | {
        role?: string | undefined
        parts?: readonly { text?: string | undefined; thought?: boolean | undefined }[] | undefined
      }
    | undefined
}

/** What is new to the user in one event. */
export interface SpokenText {
  text: string
  reasoning: string
}

/**
 * Collects the answer of a run. Each model step is heard once: from its partials when there were any,
 * otherwise from its final event, never from both. The answer is what the final author said last; thoughts
 * are not part of it.
 */
export class AnswerText {
  private stepText = ''
  private stepReasoning = ''
  private lastText = ''
  private lastAuthor = ''

  /** Takes one event and returns what it adds for a listener. */
  add(event: SpokenEvent): SpokenText {
    if (!event.author || event.author === 'user') return { text: '', reasoning: '' }
    const text = spoken(event, false)
    const reasoning = spoken(event, true)
    if (event.partial) {
      this.stepText += text
      this.stepReasoning += reasoning
      return { text, reasoning }
    }
    const fresh = {
      text: this.stepText === '' ? text : '',
      reasoning: this.stepReasoning === '' ? reasoning : '',
    }
    this.endStep(event.author, this.stepText || text)
    return fresh
  }

  /** Forgets a step that broke off: its partials are not an answer. */
  dropStep(): void {
    this.stepText = ''
    this.stepReasoning = ''
  }

  /** What the final author said last. */
  get text(): string {
    return this.lastText
  }

  private endStep(author: string, text: string): void {
    if (author !== this.lastAuthor) this.lastText = ''
    this.lastAuthor = author
    if (text !== '') this.lastText = text
    this.dropStep()
  }
}

function spoken(event: SpokenEvent, thought: boolean): string {
  return (event.content?.parts ?? [])
    .filter(part => Boolean(part.thought) === thought)
    .map(part => part.text ?? '')
    .join('')
}
