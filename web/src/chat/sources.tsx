import { isLink, type SourcesItem, sourceLabel } from '../../../src/transcript/item.js'

/** Where an answer comes from: numbered links, as many as fit on a line. */
export function Sources({ entry }: { entry: SourcesItem }) {
  return (
    <nav className="sources" aria-label="Sources">
      <ol>
        {entry.sources.map(source => (
          <li key={source.url}>
            <SourceLink source={source} />
          </li>
        ))}
      </ol>
    </nav>
  )
}

/** An address that a browser should not open is shown, and is no link. */
function SourceLink({ source }: { source: SourcesItem['sources'][number] }) {
  const { url } = source
  const content = (
    <>
      <span className="source-title">{sourceLabel(source)}</span>
      {source.title && isLink(url) ? <span className="source-host">{hostOf(url)}</span> : null}
    </>
  )
  if (!isLink(url)) {
    return (
      <span className="source" title={url}>
        {content}
      </span>
    )
  }
  return (
    <a className="source" href={url} title={url} target="_blank" rel="noreferrer noopener">
      {content}
    </a>
  )
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host.replace(/^www\./, '') : ''
}
