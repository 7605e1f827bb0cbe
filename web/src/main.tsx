import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.js'
import { PageGuard, ReloadHint } from './page-guard.js'
import './styles/tokens.css'
import './styles/base.css'
import './styles/sidebar.css'
import './styles/chat.css'
import './styles/exchange.css'
import './styles/gallery.css'
import './styles/entries.css'
import './styles/tool-card.css'
import './styles/markdown.css'
import './styles/composer.css'

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <PageGuard fallback={<ReloadHint what="The chat" />}>
        <App />
      </PageGuard>
    </StrictMode>,
  )
}
