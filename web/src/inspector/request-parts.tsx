import './request.css'
import { LongText } from './long-text.js'
import type { WireRequest } from './wire-messages.js'
import { plural } from './words.js'

/** What goes with the history: the instruction, the declared tools, the settings. */
export function RequestParts({ request }: { request: WireRequest }) {
  const settings = Object.entries(request.settings)
  return (
    <div className="inspect-request-parts">
      <section>
        <h3>System instruction</h3>
        {request.system === '' ? (
          <p className="inspect-repair-reason">This request has none.</p>
        ) : (
          <LongText className="inspect-request-system" text={request.system} limit={4000} />
        )}
      </section>
      <section>
        <h3>
          {request.tools.length === 0
            ? 'No tools declared'
            : `${plural(request.tools.length, 'tool')} declared`}
        </h3>
        {request.tools.map(tool => (
          <details key={tool.name} className="inspect-request-tool">
            <summary>
              <code>{tool.name}</code> <span dir="auto">{tool.description}</span>
            </summary>
            <pre>{JSON.stringify(tool.parameters ?? {}, null, 2)}</pre>
          </details>
        ))}
      </section>
      {settings.length > 0 ? (
        <section>
          <h3>Settings</h3>
          <dl className="inspect-request-settings">
            {settings.map(([name, value]) => (
              <div key={name}>
                <dt>
                  <code>{name}</code>
                </dt>
                <dd>
                  <code>{JSON.stringify(value)}</code>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ) : null}
    </div>
  )
}
