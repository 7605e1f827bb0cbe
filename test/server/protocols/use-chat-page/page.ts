/** The AI SDK's own hook on a page: what it knows is shown, and what it can do is left at the window. */
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport } from 'ai'
import { createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { type ChatWindow, isAnswered } from './chat-window.js'

const page = globalThis as unknown as ChatWindow & {
  location: { hash: string }
  document: { getElementById(id: string): Parameters<typeof createRoot>[0] }
}

/** `#chat-id`, and `#chat-id/resume` for a page that was loaded again. */
const [id = 'chat', mode] = page.location.hash.slice(1).split('/')

function Chat() {
  const chat = useChat({
    id,
    resume: mode === 'resume',
    transport: new DefaultChatTransport({ api: '/api/chat' }),
    sendAutomaticallyWhen: isAnswered,
  })
  page.chat = {
    messages: chat.messages,
    status: chat.status,
    error: chat.error?.message,
    send: text => void chat.sendMessage({ text }),
    sendFile: (text, url) =>
      void chat.sendMessage({ text, files: [{ type: 'file', mediaType: 'image/png', url }] }),
    edit: (messageId, text) => void chat.sendMessage({ text, messageId }),
    regenerate: messageId => void chat.regenerate(messageId === undefined ? {} : { messageId }),
    approve: (approvalId, approved) => void chat.addToolApprovalResponse({ id: approvalId, approved }),
    stop: () => void chat.stop(),
  }
  const lines = chat.messages.flatMap(({ role, parts }) =>
    parts.flatMap((part, index) =>
      part.type === 'text' ? [createElement('p', { key: `${role}-${index}` }, `${role}: ${part.text}`)] : [],
    ),
  )
  return createElement('main', null, ...lines)
}

createRoot(page.document.getElementById('root')).render(createElement(Chat))
