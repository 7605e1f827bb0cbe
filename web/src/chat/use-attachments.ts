import { useCallback, useState } from 'react'
import type { AttachedFile } from '../state/api.js'
import { attachmentProblem } from '../state/attachments.js'

export interface Attachments {
  files: readonly AttachedFile[]
  problem: string | undefined
  add: (files: Iterable<File>) => Promise<void>
  remove: (index: number) => void
  replace: (files: readonly AttachedFile[]) => void
}

/** The files that go with the next message. */
export function useAttachments(maxBodyBytes: number): Attachments {
  const [files, setFiles] = useState<readonly AttachedFile[]>([])
  const [problem, setProblem] = useState<string>()
  const add = useCallback(
    async (added: Iterable<File>) => {
      // The browser empties its list as soon as the event is over.
      const chosen = [...added]
      let all = files
      let refused: string | undefined
      for (const file of chosen) {
        const reason = attachmentProblem(all, file, maxBodyBytes)
        if (reason) refused = reason
        else all = [...all, await read(file)]
      }
      setFiles(all)
      setProblem(refused)
    },
    [files, maxBodyBytes],
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

async function read(file: File): Promise<AttachedFile> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
  const data = url.slice(url.indexOf(',') + 1)
  return { mimeType: file.type || 'application/octet-stream', data, name: file.name || 'pasted' }
}
