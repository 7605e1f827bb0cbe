import { type ComponentProps, memo, useMemo } from 'react'
import ReactMarkdown, { type Components, defaultUrlTransform } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { isTooComplex, markdownBlocks } from '../state/markdown-blocks.js'
import { CodeBlock } from './code-block.js'

/** Markdown as it is written: finished blocks are not parsed again while more comes in. */
export function Markdown({ text, isStreaming = false }: { text: string; isStreaming?: boolean }) {
  const blocks = useMemo(() => markdownBlocks(text), [text])
  return (
    <div className="markdown" dir="auto" data-streaming={isStreaming || undefined}>
      {blocks.map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks only ever grow at the end.
        <Block key={index} text={block} />
      ))}
    </div>
  )
}

const PLUGINS = [remarkGfm]

const Block = memo(function Block({ text }: { text: string }) {
  if (isTooComplex(text)) return <p className="plain-block">{text}</p>
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS} urlTransform={safeUrl}>
      {text}
    </ReactMarkdown>
  )
})

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
  if (!isBlock) return <code {...rest}>{children}</code>
  const language = /language-([\w+#-]+)/.exec(className ?? '')?.[1] ?? ''
  return <CodeBlock code={String(children ?? '').replace(/\n$/, '')} language={language} />
}

/** Inline code has no line end; a block always ends with one. */
function isBlock(node: { properties?: Record<string, unknown> } | undefined, children: unknown): boolean {
  return node?.properties?.className !== undefined || String(children ?? '').endsWith('\n')
}
