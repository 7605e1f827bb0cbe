/** The hook of one version of the AI SDK on a page, at its default settings; what it knows and can do is left at the window. */
import { DefaultChatTransport, isDataUIPart, type UIMessage } from 'ai'
import { useChat } from 'ai-react-6'
import { createElement, useState } from 'react'
import { createRoot } from 'react-dom/client'
import type { ChatWindow } from './chat-window.js'

const page = globalThis as unknown as ChatWindow & Pick<Window, 'location' | 'document'>

/** `#chat-id`, `#chat-id/resume` for a page that was loaded again, `#chat-id/data` for approvals as data parts. */
const [id = 'chat', ...modes] = page.location.hash.slice(1).split('/')
const isData = modes.includes('data')

/** Whether every call that waits for the user was answered: then the answers are sent. */
function isAnswered({ messages }: { messages: UIMessage[] }): boolean {
  const parts = messages.at(-1)?.parts ?? []
  const asked = parts.flatMap(part => {
    return isDataUIPart(part) && part.type === 'data-approval-request'
      ? [(part.data as { toolCallId: string }).toolCallId]
      : []
  })
  const tools = parts.filter(part => part.type === 'dynamic-tool')
  const own = tools.filter(part => asked.includes(part.toolCallId) || !part.providerExecuted)
  if (own.length > 0) return own.every(part => part.state.startsWith('output-')) && isLast(parts)
  const states = tools.map(({ state }) => state)
  return states.includes('approval-responded') && !states.includes('approval-requested')
}

/** Nothing was said after the last call: the run has not continued yet. */
function isLast(parts: UIMessage['parts']): boolean {
  const lastCall = parts.findLastIndex(({ type }) => type === 'dynamic-tool')
  return !parts.slice(lastCall).some(({ type }) => type === 'text')
}

const received: { type: string; data: unknown }[] = []

interface Opened {
  messages: UIMessage[]
  resume: boolean
  /** Opens the chat anew, with the stored messages, and follows the answer that is being written. */
  reopen(): Promise<void>
}

/** A chat is opened anew by another key: its hook begins with the messages that it is given. */
function Page() {
  const [{ count, ...opened }, setOpened] = useState({
    count: 0,
    messages: [] as UIMessage[],
    resume: modes.includes('resume'),
  })
  const reopen = async () => {
    const { messages } = (await (await fetch(`/api/chat/${id}`)).json()) as { messages: UIMessage[] }
    setOpened({ count: count + 1, messages, resume: true })
  }
  return createElement(Chat, { key: count, ...opened, reopen })
}

function Chat({ messages, resume, reopen }: Opened) {
  const chat = useChat({
    id,
    messages,
    resume,
    transport: new DefaultChatTransport({
      api: '/api/chat',
      ...(isData ? { headers: { 'x-lango-approvals': 'data' } } : {}),
    }),
    sendAutomaticallyWhen: isAnswered,
    onData: ({ type, data }) => received.push({ type, data }),
  })
  const addOutput = (toolCallId: string, output: unknown) =>
    void chat.addToolOutput({ tool: 'any' as never, toolCallId, output: output as never })
  page.chat = {
    messages: chat.messages,
    status: chat.status,
    error: chat.error?.message,
    data: received,
    send: text => void chat.sendMessage({ text }),
    regenerate: () => void chat.regenerate(),
    approve: (approvalId, toolCallId, approved) =>
      isData
        ? addOutput(toolCallId, { approved })
        : void chat.addToolApprovalResponse({ id: approvalId, approved }),
    addOutput,
    resume: () => void chat.resumeStream(),
    reopen,
    stop: () => Promise.resolve(chat.stop()),
  }
  return createElement('main', null, JSON.stringify(chat.messages))
}

const root = page.document.getElementById('root')
if (root) createRoot(root).render(createElement(Page))
