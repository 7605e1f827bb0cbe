// Runs after mermaid, in a document that can reach nothing: it has no origin, no network and no storage. Each
// message brings a diagram's source and a port for the answer.
/** @type {import('mermaid').default} */
const drawer = globalThis.mermaid
let last = Promise.resolve()
let count = 0

addEventListener('message', ({ data, ports: [port] }) => {
  last = last.then(() => answer(data, port))
})

async function answer({ source, isDark }, port) {
  try {
    port.postMessage(await draw(source, isDark))
  } catch (error) {
    document.body.replaceChildren()
    port.postMessage({ problem: String(error?.message ?? error) })
  }
}

async function draw(source, isDark) {
  drawer.initialize({
    startOnLoad: false,
    securityLevel: 'strict',
    suppressErrorRendering: true,
    theme: isDark ? 'dark' : 'neutral',
    fontFamily: 'ui-sans-serif, system-ui, sans-serif',
    // Labels in HTML would not be drawn in a picture by every browser.
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    // What a source may not change by its own settings.
    secure: [
      'secure',
      'securityLevel',
      'startOnLoad',
      'maxTextSize',
      'maxEdges',
      'htmlLabels',
      'suppressErrorRendering',
    ],
  })
  count += 1
  const { svg } = await drawer.render(`diagram-${count}`, source)
  document.body.innerHTML = svg
  const drawn = document.body.querySelector('svg')
  // A picture has the size that it says; mermaid's says "as wide as there is room".
  const { width, height } = drawn.viewBox.baseVal
  drawn.setAttribute('width', String(width))
  drawn.setAttribute('height', String(height))
  drawn.style.maxWidth = ''
  const text = new XMLSerializer().serializeToString(drawn)
  document.body.replaceChildren()
  return { svg: text, width, height, type: drawn.getAttribute('aria-roledescription') ?? '' }
}

parent.postMessage('ready', '*')
