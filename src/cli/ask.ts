import { createInterface } from 'node:readline'

/** Whether input and error output are a terminal, so that a question can be asked. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks on standard error and reads one line. The end of input and an abort count as no answer. */
export function ask(question: string, signal?: AbortSignal): Promise<string> {
  return new Promise(resolve => {
    const terminal = createInterface({ input: process.stdin, output: process.stderr })
    let answer = ''
    const end = () => terminal.close()
    terminal.on('close', () => {
      signal?.removeEventListener('abort', end)
      resolve(answer.trim().toLowerCase())
    })
    // While readline reads a line, Ctrl-C is an event and raises no signal.
    terminal.on('SIGINT', () => {
      end()
      process.kill(process.pid, 'SIGINT')
    })
    signal?.addEventListener('abort', end, { once: true })
    terminal.question(question, line => {
      answer = line
      end()
    })
  })
}
