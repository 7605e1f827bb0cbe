import {
  type ComponentProps,
  lazy,
  type RefObject,
  Suspense,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import { flushSync } from 'react-dom'
import type { LangoClient } from '../../src/client/client.js'
import { ChatPage } from './chat/chat-page.js'
import { ChatContext, type ChatContextValue, type Panel, useObserved } from './chat-context.js'
import { useChosenModel } from './chosen-model.js'
import { useRunOptions } from './chosen-thinking.js'
import { PanelHost } from './panel-host.js'
import { listenForRuns } from './run-channel.js'
import type { ServerLink } from './server-link.js'
import { SessionsController } from './sessions-controller.js'
import { ShortcutsDialog } from './shortcuts-dialog.js'
import { Sidebar } from './sidebar/sidebar.js'
import type { ModelChoice, ServerInfo } from './state/api.js'
import { Observable } from './state/observable.js'
import { ThreadController } from './thread-controller.js'
import { useLocation } from './use-location.js'
import { useShortcuts } from './use-shortcuts.js'
import { VariantsController } from './variants-controller.js'

const CheckPage = lazy(() => import('./check/check-page.js').then(module => ({ default: module.CheckPage })))
const ImportDialog = lazy(() =>
  import('./exchange/import-dialog.js').then(module => ({ default: module.ImportDialog })),
)
const SettingsDialog = lazy(() =>
  import('./settings-dialog.js').then(module => ({ default: module.SettingsDialog })),
)

interface ChatAppProps {
  client: LangoClient
  link: ServerLink
  info: ServerInfo
  models: readonly ModelChoice[]
}

/** The page: chats at the left, one of them in the middle, a panel at the right when it is asked for. */
export function ChatApp({ client, link, info, models }: ChatAppProps) {
  const { thread, sessions, variants } = useControllers(client, link)
  const area = useRef<HTMLTextAreaElement>(null)
  const searchField = useRef<HTMLInputElement>(null)
  const { openId, isCheck, ...places } = usePlaces(thread, area)
  const { panel, setPanel, isSidebarOpen, setSidebarOpen, openSession, openPanel, openCheck } = places
  const [dialog, setDialog] = useState<Dialog>()
  const [model, setModel] = useChosenModel(openId, models)
  const [options, setThinking] = useRunOptions(openId, model)
  const inspectMessage = useInspectMessage(client, thread, openPanel)
  const finding = useFinding(openId)
  const actions = { finding, setModel, setThinking, openSession, openPanel, openCheck, inspectMessage }
  const context = useContextValue({
    client,
    link: link.state,
    thread,
    sessions,
    variants,
    info,
    models,
    model,
    options,
    ...actions,
  })
  useEffect(() => void variants.read(openId), [variants, openId])
  useShortcuts({
    newChat: () => openSession(undefined),
    search: () => {
      // Drawn at once, so that no letter of a quick typist is lost.
      flushSync(() => setSidebarOpen(true))
      searchField.current?.focus()
    },
    focusComposer: () => area.current?.focus(),
    stop: () => (panel ? setPanel(undefined) : void thread.stop()),
    toggleSidebar: () => setSidebarOpen(isOpen => !isOpen),
    help: () => setDialog('keys'),
    settings: () => setDialog('settings'),
    find: () => finding.set(true),
  })
  return (
    <ChatContext value={context}>
      <div
        className="app"
        data-sidebar={isSidebarOpen ? 'open' : 'closed'}
        data-panel={panel ? 'open' : undefined}
      >
        {isSidebarOpen ? (
          <Drawer
            searchField={searchField}
            onClose={() => setSidebarOpen(false)}
            onShowShortcuts={() => setDialog('keys')}
            onShowSettings={() => setDialog('settings')}
            onImport={() => setDialog('import')}
          />
        ) : null}
        <MainPage
          isCheck={isCheck}
          area={area}
          isSidebarOpen={isSidebarOpen}
          onToggleSidebar={() => setSidebarOpen(true)}
        />
        {panel && (openId || panel.type === 'usage') ? (
          <PanelHost panel={panel} sessionId={openId ?? ''} onClose={() => setPanel(undefined)} />
        ) : null}
      </div>
      <OpenDialog dialog={dialog} onClose={() => setDialog(undefined)} />
    </ChatContext>
  )
}

/** What is open: a chat or the check, the panel beside it, and the list of chats. */
function usePlaces(thread: ThreadController, area: RefObject<HTMLTextAreaElement | null>) {
  const { openId, isCheck, navigate, goToCheck } = useAddress(thread)
  const [panel, setPanel] = useState<Panel>()
  const [isSidebarOpen, setSidebarOpen] = useState(() => window.innerWidth > PHONE_WIDTH)
  const arrive = useCallback(() => {
    setPanel(undefined)
    if (window.innerWidth <= PHONE_WIDTH) setSidebarOpen(false)
  }, [])
  const openSession = useCallback(
    (next: string | undefined) => {
      if (next === undefined) void thread.open(undefined)
      navigate(next, 'push')
      arrive()
      // On a phone the keyboard would cover the chat that was just opened.
      if (matchMedia('(hover: hover)').matches) setTimeout(() => area.current?.focus())
    },
    [navigate, thread, arrive, area],
  )
  const openPanel = useCallback((next: Panel) => {
    setPanel(next)
    if (window.innerWidth <= WIDE_WIDTH) setSidebarOpen(false)
  }, [])
  const openCheck = useCallback(() => {
    goToCheck()
    arrive()
  }, [goToCheck, arrive])
  const views = { openId, isCheck, panel, setPanel, isSidebarOpen, setSidebarOpen }
  return { ...views, openSession, openPanel, openCheck }
}

/** A chat, or the page that checks a history. */
function MainPage({ isCheck, ...props }: ComponentProps<typeof ChatPage> & { isCheck: boolean }) {
  if (!isCheck) return <ChatPage {...props} />
  const { area: _area, ...rest } = props
  return (
    <Suspense fallback={<main className="chat" />}>
      <CheckPage {...rest} />
    </Suspense>
  )
}

type Dialog = 'keys' | 'settings' | 'import' | undefined

function OpenDialog({ dialog, onClose }: { dialog: Dialog; onClose: () => void }) {
  if (dialog === 'keys') return <ShortcutsDialog onClose={onClose} />
  if (dialog === undefined) return null
  return (
    <Suspense fallback={null}>
      {dialog === 'settings' ? <SettingsDialog onClose={onClose} /> : <ImportDialog onClose={onClose} />}
    </Suspense>
  )
}

/** The session that is open, and how to open another: the page's address and the thread follow each other. */
function useAddress(thread: ThreadController) {
  const [{ sessionId, isCheck }, navigate, goToCheck] = useLocation()
  const { sessionId: openId } = useObserved(thread.state)
  useEffect(() => void thread.open(sessionId), [thread, sessionId])
  // A session gets its address with its first message.
  useEffect(() => {
    if (openId !== undefined && sessionId === undefined && !isCheck) navigate(openId, 'replace')
  }, [openId, sessionId, isCheck, navigate])
  // What was open would take its address back.
  const leave = useCallback(() => {
    void thread.open(undefined)
    goToCheck()
  }, [thread, goToCheck])
  return { openId, isCheck, navigate, goToCheck: leave }
}

/** Whether words are looked for in the open chat. */
function useFinding(openId: string | undefined): Observable<boolean> {
  const finding = useMemo(() => new Observable(false), [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: another chat is another search.
  useEffect(() => finding.set(false), [finding, openId])
  return finding
}

/** The context changes only when one of its values does. */
function useContextValue(value: ChatContextValue): ChatContextValue {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the values are all that the object consists of.
  return useMemo(() => value, Object.values(value))
}

/** The list of chats; on a phone it covers the page, and a tap outside closes it. */
function Drawer(props: ComponentProps<typeof Sidebar>) {
  return (
    <>
      <Sidebar {...props} />
      <button type="button" className="drawer-shade" aria-label="Close the chats" onClick={props.onClose} />
    </>
  )
}

/** Up to here the chats are a drawer over the page. */
const PHONE_WIDTH = 760
/** Up to here the chats give way to a panel. */
const WIDE_WIDTH = 1199

function useControllers(client: LangoClient, link: ServerLink) {
  const controllers = useMemo(() => {
    const thread = new ThreadController(client)
    const sessions = new SessionsController(client)
    const variants = new VariantsController(client)
    thread.onSessionsChanged = () => void sessions.refresh()
    return { thread, sessions, variants }
  }, [client])
  useEffect(() => {
    void controllers.sessions.refresh()
    const onVisible = () => {
      if (document.visibilityState !== 'visible') return
      void controllers.sessions.refresh()
      void controllers.thread.refresh()
    }
    const leaving = new AbortController()
    document.addEventListener('visibilitychange', onVisible, { signal: leaving.signal })
    listenForRuns(leaving.signal, () => void controllers.sessions.refresh())
    const unsubscribe = link.state.subscribe(() => {
      if (link.state.get() === 'lost') return
      void controllers.sessions.refresh()
      void controllers.thread.reload()
    })
    return () => {
      leaving.abort()
      unsubscribe()
    }
  }, [controllers, link])
  return controllers
}

/** An answer belongs to the newest run that began before it. */
function useInspectMessage(client: LangoClient, thread: ThreadController, openPanel: (panel: Panel) => void) {
  return useCallback(
    (seq: number) => {
      const { sessionId } = thread.state.get()
      if (sessionId === undefined) return
      void client.runs(sessionId, { limit: 500 }).then(
        ({ runs }) => {
          const run = runs.find(({ afterSeq }) => afterSeq !== undefined && afterSeq < seq)
          if (run) openPanel({ type: 'inspector', runId: run.runId })
          else
            thread.showProblem(
              'no-run',
              'Nothing is recorded of this answer: it was imported or copied, or its records were pruned.',
            )
        },
        (error: unknown) => thread.showError(error),
      )
    },
    [client, thread, openPanel],
  )
}
