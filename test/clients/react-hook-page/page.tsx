import { createClient } from 'lango/client'
import { createRoot } from 'react-dom/client'
import { useRun } from '../../../examples/use-run.js'

const client = createClient()

function Chat() {
  const { status, text, error, send, stop } = useRun(client, 's')
  return (
    <main>
      <button type="button" onClick={() => void send('apples')}>
        Send
      </button>
      <button type="button" onClick={() => void stop()}>
        Stop
      </button>
      <p id="status">{status}</p>
      <p id="text">{text}</p>
      <p id="error">{error}</p>
    </main>
  )
}

const root = document.getElementById('root')
if (root) createRoot(root).render(<Chat />)
