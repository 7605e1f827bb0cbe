import { useCallback, useEffect, useState } from 'react'
import type { AttachedFile } from '../state/api.js'
import { attachmentProblem } from '../state/attachments.js'

export interface Attachments {
  files: readonly AttachedFile[]
  problem: string | undefined
  add: (files: Iterable<File>) => Promise<void>
  remove: (index: number) => void
  replace: (files: readonly AttachedFile[]) => void
}

/** The files that go with the next message of a chat; those of another chat wait there. */
export function useAttachments(sessionId: string | undefined, maxBodyBytes: number): Attachments {
  const [all, setAll] = useState<ReadonlyMap<string | undefined, readonly AttachedFile[]>>(new Map())
  const [problem, setProblem] = useState<string>()
  const files = all.get(sessionId) ?? NONE
  const setFiles = useCallback(
    (next: readonly AttachedFile[]) => setAll(before => new Map(before).set(sessionId, next)),
    [sessionId],
  )
  // biome-ignore lint/correctness/useExhaustiveDependencies: problems of another chat's files are no longer shown.
  useEffect(() => setProblem(undefined), [sessionId])
  const add = useCallback(
    async (added: Iterable<File>) => {
      // The browser empties its list as soon as the event is over.
      const chosen = [...added]
      let attached = files
      let refused: string | undefined
      for (const file of chosen) {
        const reason = attachmentProblem(attached, file, maxBodyBytes)
        const added = reason === undefined ? await read(file) : undefined
        if (added) attached = [...attached, added]
        else refused = reason ?? `${file.name} could not be read. Folders cannot be attached.`
      }
      setFiles(attached)
      setProblem(refused)
    },
    [files, setFiles, maxBodyBytes],
  )
  const remove = (index: number) => {
    setProblem(undefined)
    setFiles(files.filter((_, position) => position !== index))
  }
  const replace = (next: readonly AttachedFile[]) => {
    setProblem(undefined)
    setFiles(next)
  }
  return { files, problem, add, remove, replace }
}

const NONE: readonly AttachedFile[] = []

/** A folder that was dropped looks like a file until it is read. */
async function read(file: File): Promise<AttachedFile | undefined> {
  const url = await new Promise<string | undefined>(resolve => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => resolve(undefined)
    reader.readAsDataURL(file)
  })
  if (url === undefined) return undefined
  const data = url.slice(url.indexOf(',') + 1)
  return { mimeType: file.type || 'application/octet-stream', data, name: file.name || 'pasted' }
}
