/** The part of `checked-store.ts` that concerns artifacts. */
import { isRecord } from '../base/is-record.js'
import type { Artifact, ArtifactKey, ArtifactStore, ArtifactVersion } from '../session/artifacts.js'
import type { SessionKey } from '../session/message.js'
import { checkInteger, checkKey, checkName, invalid } from './check-input.js'
import { checked } from './checked-runs.js'

export class CheckedArtifacts implements ArtifactStore {
  readonly #artifacts: ArtifactStore

  constructor(artifacts: ArtifactStore) {
    this.#artifacts = artifacts
  }

  save(key: ArtifactKey, artifact: Artifact): Promise<number> {
    const check = () => {
      checkArtifactKey(key)
      if (!isRecord(artifact.header)) throw invalid('header', 'must be an object', artifact.header)
      if (typeof artifact.body !== 'string') throw invalid('body', 'must be a string', undefined)
    }
    return checked(check, () => this.#artifacts.save(key, artifact))
  }

  load(key: ArtifactKey, version?: number): Promise<Artifact | undefined> {
    const check = () => {
      checkArtifactKey(key)
      if (version !== undefined) checkInteger('version', version, 0)
    }
    return checked(check, () => this.#artifacts.load(key, version))
  }

  list(key: SessionKey): Promise<string[]> {
    return checked(
      () => checkKey(key),
      () => this.#artifacts.list(key),
    )
  }

  versions(key: ArtifactKey): Promise<ArtifactVersion[]> {
    return checked(
      () => checkArtifactKey(key),
      () => this.#artifacts.versions(key),
    )
  }

  delete(key: ArtifactKey): Promise<number> {
    return checked(
      () => checkArtifactKey(key),
      () => this.#artifacts.delete(key),
    )
  }
}

function checkArtifactKey(key: ArtifactKey): void {
  checkKey(key)
  checkName('name', key.name)
}
