/** The little of an ADK event that the answer is made of. */
export interface SpokenEvent {
  author?: string | undefined
  branch?: string | undefined
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
 * otherwise from its final event, never from both. Agents that speak side by side have steps of their own. The
 * answer is what the final author said last; thoughts are not part of it.
 */
export class AnswerText {
  private readonly open = new Map<string, SpokenText>()
  private lastText = ''
  private lastAuthor = ''

  /** Takes one event and returns what it adds for a listener. */
  add(event: SpokenEvent): SpokenText {
    if (!event.author || event.author === 'user') return { text: '', reasoning: '' }
    const step = stepOf(event)
    const said = { text: spoken(event, false), reasoning: spoken(event, true) }
    const heard = this.open.get(step) ?? { text: '', reasoning: '' }
    if (event.partial) {
      this.open.set(step, { text: heard.text + said.text, reasoning: heard.reasoning + said.reasoning })
      return said
    }
    this.open.delete(step)
    this.endStep(event.author, heard.text || said.text)
    return {
      text: heard.text === '' ? said.text : '',
      reasoning: heard.reasoning === '' ? said.reasoning : '',
    }
  }

  /** Forgets steps that broke off, or that of one event: their partials are not an answer. */
  dropStep(event?: SpokenEvent): void {
    if (event) this.open.delete(stepOf(event))
    else this.open.clear()
  }

  /** What the final author said last. */
  get text(): string {
    return this.lastText
  }

  private endStep(author: string, text: string): void {
    if (author !== this.lastAuthor) this.lastText = ''
    this.lastAuthor = author
    if (text !== '') this.lastText = text
  }
}

function stepOf({ author = '', branch = '' }: SpokenEvent): string {
  return `${branch}\n${author}`
}

function spoken(event: SpokenEvent, thought: boolean): string {
  return (event.content?.parts ?? [])
    .filter(part => Boolean(part.thought) === thought)
    .map(part => part.text ?? '')
    .join('')
}
