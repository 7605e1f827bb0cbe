import { defined } from '../base/defined.js'
import { AgentError, checkOptions } from '../errors.js'
import type { Artifact, ArtifactKey, ArtifactStore } from '../session/artifacts.js'
import type { SessionKey } from '../session/message.js'
import { utf8Length } from '../session/tokens.js'
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
 *   ...(store.artifacts ? { artifactService: new ArtifactServiceAdapter(store.artifacts) } : {}),
 * })
 * ```
 */
export class ArtifactServiceAdapter implements BaseArtifactService {
  readonly #artifacts: ArtifactStore
  readonly #maxBytes: number

  constructor(artifacts: ArtifactStore, options: ArtifactServiceOptions = {}) {
    checkOptions(options, 'new ArtifactServiceAdapter')
    this.#artifacts = artifacts
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES
  }

  async saveArtifact({
    filename,
    artifact,
    customMetadata,
    ...session
  }: SaveArtifactRequest): Promise<number> {
    const { part, field, body } = takeApart(filename, artifact)
    checkSize(filename, { field, body }, this.#maxBytes)
    const header = { part, ...defined({ field, customMetadata }) }
    return this.#artifacts.save(keyOf(session, filename), { header, body })
  }

  async loadArtifact({ filename, version, ...session }: LoadArtifactRequest): Promise<Part | undefined> {
    const found = await this.#artifacts.load(keyOf(session, filename), version)
    return found && putTogether(found)
  }

  listArtifactKeys(session: ListArtifactKeysRequest): Promise<string[]> {
    return this.#artifacts.list(session)
  }

  async deleteArtifact({ filename, ...session }: DeleteArtifactRequest): Promise<void> {
    await this.#artifacts.delete(keyOf(session, filename))
  }

  async listVersions(request: ListVersionsRequest): Promise<number[]> {
    return (await this.listArtifactVersions(request)).map(({ version }) => version)
  }

  async listArtifactVersions({ filename, ...session }: ListVersionsRequest): Promise<AdkArtifactVersion[]> {
    const found = await this.#artifacts.versions(keyOf(session, filename))
    return found.map(({ version, header }) => {
      const { part, customMetadata } = header as unknown as ArtifactHeader
      const mimeType = part.inlineData?.mimeType ?? part.fileData?.mimeType
      return { version, ...defined({ mimeType, customMetadata }) }
    })
  }

  async getArtifactVersion({
    version,
    ...request
  }: LoadArtifactRequest): Promise<AdkArtifactVersion | undefined> {
    const all = await this.listArtifactVersions(request)
    return version === undefined ? all.at(-1) : all.find(each => each.version === version)
  }
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

function keyOf({ appName, userId, sessionId }: SessionKey, name: string): ArtifactKey {
  return { appName, userId, sessionId, name }
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
