import { vi } from 'vitest'

/** What a command printed on standard output, and its exit code. */
export async function captured(work: () => Promise<number>): Promise<{ code: number; text: string }> {
  let text = ''
  const write = vi.spyOn(process.stdout, 'write').mockImplementation(chunk => {
    text += String(chunk)
    return true
  })
  try {
    const code = await work()
    return { code, text }
  } finally {
    write.mockRestore()
  }
}
