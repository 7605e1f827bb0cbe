import { isToolUIPart, type UIMessage } from 'ai'

/** What the page leaves at its window, for the test to look at and to press. */
export interface ChatWindow {
  chat: {
    messages: UIMessage[]
    status: 'submitted' | 'streaming' | 'ready' | 'error'
    error: string | undefined
    send(text: string): void
    sendFile(text: string, url: string): void
    edit(messageId: string, text: string): void
    regenerate(messageId?: string): void
    approve(approvalId: string, approved: boolean): void
    stop(): void
  }
}

/** Whether every approval that was asked for has been answered: then the answers are sent by themselves. */
export function isAnswered({ messages }: { messages: UIMessage[] }): boolean {
  const states = (messages.at(-1)?.parts ?? []).map(part => (isToolUIPart(part) ? part.state : ''))
  return states.includes('approval-responded') && !states.includes('approval-requested')
}
