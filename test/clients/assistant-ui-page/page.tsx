/**
 * A chat of assistant-ui on ADK's routes, from its own parts: `useAdkRuntime` in direct mode, sessions as threads, dialogs
 * for confirmations, a tool of the page. `#session-id` opens a session.
 */
import {
  AssistantRuntimeProvider,
  ComposerPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
  type ToolCallMessagePartProps,
  useAssistantTool,
} from '@assistant-ui/react'
import {
  createAdkSessionAdapter,
  createAdkStream,
  useAdkArtifacts,
  useAdkRuntime,
  useAdkToolConfirmations,
} from '@assistant-ui/react-google-adk'
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'

const PLACE = { appName: 'lango', userId: 'user' }
const stream = createAdkStream({ api: location.origin, ...PLACE })
const { adapter, load, artifacts } = createAdkSessionAdapter({ apiUrl: location.origin, ...PLACE })

function Chat() {
  const [error, setError] = useState('')
  const runtime = useAdkRuntime({
    stream,
    load,
    sessionAdapter: adapter,
    unstable_allowCancellation: true,
    onThreadIdChange: id => history.replaceState(null, '', id === undefined ? location.pathname : `#${id}`),
    eventHandlers: { onError: given => setError(String(given)) },
  })
  useEffect(() => {
    const id = location.hash.slice(1)
    if (id !== '') void runtime.threads.switchToThread(id)
  }, [runtime])
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <PageTool />
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage: Message, AssistantMessage: Message }} />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
      <Notes />
      <output id="error">{error}</output>
    </AssistantRuntimeProvider>
  )
}

function Message() {
  return (
    <MessagePrimitive.Root>
      <article>
        <MessagePrimitive.Parts components={{ Text, tools: { Fallback: ToolCall } }} />
      </article>
    </MessagePrimitive.Root>
  )
}

function Text({ text }: { text: string }) {
  return <p>{text}</p>
}

/** A call with its dialog, as assistant-ui's own component shows it: the gate is the call that it is about. */
function ToolCall({ toolName, argsText, result, approval, respondToApproval }: ToolCallMessagePartProps) {
  const isAsked = approval && approval.approved === undefined && toolName !== 'adk_request_confirmation'
  return (
    <section data-tool={toolName}>
      {`${toolName} ${argsText} ${result === undefined ? 'no result' : JSON.stringify(result)}`}
      {isAsked && (
        <div role="dialog">
          <button type="button" onClick={() => void respondToApproval({ approved: true })}>
            Allow
          </button>
          <button type="button" onClick={() => void respondToApproval({ approved: false })}>
            Refuse
          </button>
        </div>
      )}
    </section>
  )
}

/** Executed here: the agent's own declaration is a long-running tool of the same name. */
function PageTool() {
  useAssistantTool({
    toolName: 'ask_page',
    description: 'Asks the page.',
    parameters: { type: 'object', properties: { question: { type: 'string' } } },
    execute: async () => ({ value: 'Ada' }),
  })
  return null
}

/** What the hooks know beside the messages. */
function Notes() {
  const saved = useAdkArtifacts()
  const hints = useAdkToolConfirmations().map(({ hint }) => hint)
  const [texts, setTexts] = useState('')
  const names = Object.keys(saved).join()
  useEffect(() => {
    if (names === '') return
    const id = location.hash.slice(1)
    const read = async () => {
      const listed = await artifacts.list(id)
      const loaded = await Promise.all(listed.map(name => artifacts.load(id, name)))
      setTexts(
        JSON.stringify({ listed, loaded, versions: await artifacts.listVersions(id, listed[0] ?? '') }),
      )
    }
    void read()
  }, [names])
  return <aside>{JSON.stringify({ hints, texts })}</aside>
}

const root = document.getElementById('root')
if (root) createRoot(root).render(<Chat />)
