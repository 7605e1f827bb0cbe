import { type ComponentProps, memo, useMemo } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { markdownBlocks } from '../state/markdown-blocks.js'
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
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
      {text}
    </ReactMarkdown>
  )
})

const COMPONENTS: Components = {
  a: ({ node: _node, children, ...rest }) => (
    <a {...rest} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
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

/** Pictures from elsewhere would tell others who reads what, so they are links. */
function Picture({ src, alt }: { src: string; alt: string }) {
  if (/^(data:image\/|\/(?!\/))/.test(src)) return <img src={src} alt={alt} />
  return (
    <a href={src} target="_blank" rel="noreferrer noopener">
      {alt || src}
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
