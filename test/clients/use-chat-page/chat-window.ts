import type { UIMessage } from 'ai'

/** What the page leaves at its window, for the test to look at and to press. */
export interface ChatWindow {
  chat: {
    messages: UIMessage[]
    status: 'submitted' | 'streaming' | 'ready' | 'error'
    error: string | undefined
    /** Data parts in the order in which they arrived. */
    data: { type: string; data: unknown }[]
    send(text: string): void
    regenerate(): void
    /** With the hook's own approvals, or as `ai` 5 answers: with the output of the call. */
    approve(approvalId: string, toolCallId: string, approved: boolean): void
    addOutput(toolCallId: string, output: unknown): void
    resume(): void
    reopen(): Promise<void>
    stop(): Promise<void>
  }
}
