import { type ComponentProps, createContext, memo, useContext, useEffect, useMemo, useState } from 'react'
import ReactMarkdown, { type Components, defaultUrlTransform } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { isTooComplex, markdownBlocks, mayHaveMath } from '../state/markdown-blocks.js'
import { CodeBlock } from './code-block.js'
import { Diagram } from './diagram.js'

/** Markdown as it is written: finished blocks are not parsed again while more comes in. */
export function Markdown({ text, isStreaming = false }: { text: string; isStreaming?: boolean }) {
  const blocks = useMemo(() => markdownBlocks(text), [text])
  return (
    <div className="markdown" dir="auto" data-streaming={isStreaming || undefined}>
      {blocks.map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks only ever grow at the end.
        <Block key={index} text={block} isGrowing={isStreaming && index === blocks.length - 1} />
      ))}
    </div>
  )
}

const PLUGINS = [remarkGfm]

const Block = memo(function Block({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  // A fence of mathematics that is still being written would be an unfinished formula.
  const math = useMath(mayHaveMath(text) && !(isGrowing && /(`{3}|~{3})[ \t]*math\b/.test(text)))
  if (isTooComplex(text)) return <p className="plain-block">{text}</p>
  const plugins = math?.plugins ?? { remarkPlugins: PLUGINS }
  return (
    <IsGrowing value={isGrowing}>
      <ReactMarkdown {...plugins} components={COMPONENTS} urlTransform={safeUrl}>
        {math ? math.withDollars(text) : text}
      </ReactMarkdown>
    </IsGrowing>
  )
})

/** Whether the block is still being written: no diagram is drawn of a part of its source. */
const IsGrowing = createContext(false)

type Formulas = typeof import('./math.js').math
let loaded: Formulas | undefined

/** What shows formulas, once it is needed and loaded. */
function useMath(isNeeded: boolean): Formulas | undefined {
  const [math, setMath] = useState(loaded)
  useEffect(() => {
    if (!isNeeded || math) return
    import('./math.js').then(
      module => {
        loaded = module.math
        setMath(loaded)
      },
      () => {
        // The server has other files since an update: the source of a formula can be read as well.
      },
    )
  }, [isNeeded, math])
  return isNeeded ? math : undefined
}

const COMPONENTS: Components = {
  a: ({ node: _node, children, ...rest }) => <Link {...rest}>{children}</Link>,
  img: ({ src, alt }) => <Picture src={typeof src === 'string' ? src : ''} alt={alt ?? ''} />,
  table: ({ node: _node, ...rest }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    <div className="table-frame" tabIndex={0}>
      <table {...rest} />
    </div>
  ),
  // A list stands on the side where its language begins.
  ul: ({ node: _node, ...rest }) => <ul dir="auto" {...rest} />,
  ol: ({ node: _node, ...rest }) => <ol dir="auto" {...rest} />,
  blockquote: ({ node: _node, ...rest }) => <blockquote dir="auto" {...rest} />,
  input: ({ node: _node, checked, ...rest }) => (
    <input {...rest} defaultChecked={checked === true} aria-label={checked ? 'Done' : 'To do'} />
  ),
  pre: ({ children }) => <>{children}</>,
  code: ({ node, children, className, ...rest }) => (
    <Code className={className} isBlock={isBlock(node, children)} {...rest}>
      {children}
    </Code>
  ),
}

/** Loading pictures from other servers would disclose who reads what, so they are links. */
function Picture({ src, alt }: { src: string; alt: string }) {
  if (PICTURE_DATA.test(src)) return <img src={src} alt={alt} />
  return <Link href={src}>{alt || src}</Link>
}

const PICTURE_DATA = /^data:image\/(png|jpeg|gif|webp);base64,/

/** Pictures may be inside the text; otherwise only what leads to a page or a mailbox is an address. */
function safeUrl(url: string, key: string): string {
  return key === 'src' && PICTURE_DATA.test(url) ? url : defaultUrlTransform(url)
}

/** An address that is not one to be followed, such as a script, is left out: its words stay as words. */
function Link({ href, children, ...rest }: ComponentProps<'a'>) {
  if (!href) return <span>{children}</span>
  return (
    <a {...rest} href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  )
}

function Code({ isBlock, className, children, ...rest }: ComponentProps<'code'> & { isBlock: boolean }) {
  const isGrowing = useContext(IsGrowing)
  if (!isBlock) return <code {...rest}>{children}</code>
  const language = /language-([\w+#-]+)/.exec(className ?? '')?.[1] ?? ''
  const code = String(children ?? '').replace(/\n$/, '')
  if (language === 'mermaid' && !isGrowing) return <Diagram source={code} />
  return <CodeBlock code={code} language={language} />
}

/** Inline code has no line end; a block always ends with one. */
function isBlock(node: { properties?: Record<string, unknown> } | undefined, children: unknown): boolean {
  return node?.properties?.className !== undefined || String(children ?? '').endsWith('\n')
}
