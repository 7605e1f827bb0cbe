import { defined } from '../base/defined.js'
import { AgentError, checkOptions } from '../errors.js'
import { type Artifact, type ArtifactKey, type ArtifactStore, isUserArtifact } from '../session/artifacts.js'
import type { SessionKey } from '../session/message.js'
import { utf8Length } from '../session/tokens.js'
import { withoutScope } from './adk-quirks.js'
import {
  type AdkArtifactVersion,
  type BaseArtifactService,
  type DeleteArtifactRequest,
  FileArtifactService,
  type ListArtifactKeysRequest,
  type ListVersionsRequest,
  type LoadArtifactRequest,
  type Part,
  type SaveArtifactRequest,
} from './sdk.js'

export interface ArtifactServiceOptions {
  /** The most bytes of one artifact. Default 33,554,432. */
  maxBytes?: number | undefined
  /**
   * Refuses artifacts of a session that the store does not have (`session-not-found`). Default: they are kept, belong to
   * the user, and are deleted by erasing the user: the sessions may be kept by another service.
   */
  needsSession?: boolean | undefined
}

/**
 * ADK's artifact service over a store. Artifacts are kept with their session and deleted with it; those whose name
 * starts with `user:` belong to the user.
 *
 * ```ts
 * import { LlmAgent, Runner } from '@google/adk'
 * import { ArtifactServiceAdapter, SessionServiceAdapter } from 'lango/adk'
 * import { openStore } from 'lango/store'
 *
 * const store = await openStore('sqlite:./lango.db')
 * const agent = new LlmAgent({ name: 'root', model: 'gemini-3.5-flash' })
 * export const runner = new Runner({
 *   appName: 'app',
 *   agent,
 *   sessionService: new SessionServiceAdapter(store, { rootAgentName: agent.name }),
 *   artifactService: new ArtifactServiceAdapter(store.artifacts),
 * })
 * ```
 */
export class ArtifactServiceAdapter implements BaseArtifactService {
  readonly #artifacts: ArtifactStore
  readonly #maxBytes: number
  readonly #needsSession: boolean

  constructor(artifacts: ArtifactStore, options: ArtifactServiceOptions = {}) {
    checkOptions(options, 'new ArtifactServiceAdapter')
    this.#artifacts = artifacts
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES
    this.#needsSession = options.needsSession ?? false
  }

  async saveArtifact(request: SaveArtifactRequest): Promise<number> {
    const { filename, artifact, customMetadata } = request
    const { part, field, body } = takeApart(filename, artifact)
    checkSize(filename, { field, body }, this.#maxBytes)
    const saved = { header: { part, ...defined({ field, customMetadata }) }, body }
    const key = await this.#keyOf(request)
    try {
      return await this.#artifacts.save(key, saved)
    } catch (error) {
      const isWithoutSession = error instanceof AgentError && error.code === 'session-not-found'
      if (!isWithoutSession || this.#needsSession) throw error
      return this.#artifacts.save(looseKey(key), saved)
    }
  }

  async loadArtifact(request: LoadArtifactRequest): Promise<Part | undefined> {
    const found = await this.#artifacts.load(await this.#keyOf(request), request.version)
    return found && putTogether(found)
  }

  async listArtifactKeys(request: ListArtifactKeysRequest): Promise<string[]> {
    const { appName, userId, sessionId } = withoutScope(request)
    const names = await this.#artifacts.list({ appName, userId, sessionId })
    const own = looseName(sessionId, '')
    return names
      .filter(name => !name.startsWith(LOOSE) || name.startsWith(own))
      .map(name => (name.startsWith(own) ? name.slice(own.length) : name))
      .sort()
  }

  async deleteArtifact(request: DeleteArtifactRequest): Promise<void> {
    await this.#artifacts.delete(await this.#keyOf(request))
  }

  async listVersions(request: ListVersionsRequest): Promise<number[]> {
    return (await this.listArtifactVersions(request)).map(({ version }) => version)
  }

  async listArtifactVersions(request: ListVersionsRequest): Promise<AdkArtifactVersion[]> {
    const found = await this.#artifacts.versions(await this.#keyOf(request))
    return found.map(({ version, header }) => {
      const { customMetadata } = header as unknown as ArtifactHeader
      return {
        version,
        ...defined({ mimeType: mimeTypeOf(header as unknown as ArtifactHeader), customMetadata }),
      }
    })
  }

  async getArtifactVersion({
    version,
    ...request
  }: LoadArtifactRequest): Promise<AdkArtifactVersion | undefined> {
    const all = await this.listArtifactVersions(request)
    return version === undefined ? all.at(-1) : all.find(each => each.version === version)
  }

  /** Where a name has versions: those that were saved before the store had the session stay where they are. */
  async #keyOf(request: SessionKey & { filename: string }): Promise<ArtifactKey> {
    const { appName, userId, sessionId, filename } = withoutScope(request)
    const key = { appName, userId, sessionId, name: filename }
    if (this.#needsSession || isUserArtifact(filename)) return key
    const loose = looseKey(key)
    return (await this.#artifacts.versions(loose)).length > 0 ? loose : key
  }
}

/** The names, among those of the user, of artifacts of sessions that the store does not have. */
const LOOSE = 'user:.sessions/'

function looseName(sessionId: string, filename: string): string {
  return `${LOOSE}${encodeURIComponent(sessionId)}/${filename}`
}

function looseKey(key: ArtifactKey): ArtifactKey {
  return { ...key, name: looseName(key.sessionId, key.name) }
}

/** The type of the content. A `fileData` next to a text or data is not the content. */
function mimeTypeOf({ part, field }: ArtifactHeader): string | undefined {
  if (field === 'data') return part.inlineData?.mimeType
  return field === 'text' ? undefined : part.fileData?.mimeType
}

const DEFAULT_MAX_BYTES = 32 * 1024 * 1024

/** ADK's own service for a folder, with the same bound on sizes. */
export function boundedService(folder: string, maxBytes = DEFAULT_MAX_BYTES): BaseArtifactService {
  const service = new FileArtifactService(folder)
  const saveArtifact = service.saveArtifact.bind(service)
  service.saveArtifact = async request => {
    checkSize(request.filename, takeApart(request.filename, request.artifact), maxBytes)
    return saveArtifact(request)
  }
  return service
}

/** What is stored of a part besides its text or its data. */
interface ArtifactHeader {
  part: Part
  /** Where the body belongs. */
  field?: 'text' | 'data'
  customMetadata?: Record<string, unknown>
}

function takeApart(filename: string, artifact: Part): ArtifactHeader & { body: string } {
  const { text, inlineData, ...others } = artifact
  if (inlineData) {
    const { data = '', ...facts } = inlineData
    return { part: { ...others, ...defined({ text }), inlineData: facts }, field: 'data', body: data }
  }
  if (text) return { part: others, field: 'text', body: text }
  if (others.fileData) return { part: artifact, body: '' }
  throw new AgentError(
    'invalid-argument',
    `Artifact "${filename}" is empty: it needs \`text\`, \`inlineData\` or \`fileData\`.`,
  )
}

function putTogether({ header, body }: Artifact): Part {
  const { part, field } = header as unknown as ArtifactHeader
  if (field === 'text') return { ...part, text: body }
  return field === 'data' ? { ...part, inlineData: { ...part.inlineData, data: body } } : part
}

function checkSize(
  filename: string,
  { field, body }: { field?: string | undefined; body: string },
  maxBytes: number,
): void {
  const bytes = field === 'data' ? Math.floor((body.length * 3) / 4) : utf8Length(body)
  if (bytes <= maxBytes) return
  throw new AgentError(
    'invalid-argument',
    `Artifact "${filename}" has ${bytes} bytes; at most ${maxBytes} are allowed. Raise \`artifacts.maxBytes\`, or store it elsewhere and save a \`fileData\` with its address.`,
    { details: { filename, bytes, maxBytes } },
  )
}
