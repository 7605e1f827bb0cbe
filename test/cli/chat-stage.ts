/** A chat on a real pseudo-terminal with strict providers behind it; all of it ends with its test. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import {
  type StrictProvider,
  type StrictProviderOptions,
  startStrictProvider,
} from '../../src/testing/start-strict-provider.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { type TerminalOptions, TestTerminal } from '../support/terminal.js'

/** What a chat shows when it can be talked to. */
export const READY = '/help lists'

/** Starts `lango` on a terminal. */
export function start(options: TerminalOptions): TestTerminal {
  const terminal = new TestTerminal(options)
  onTestFinished(() => terminal.kill())
  return terminal
}

/** Starts a provider that refuses what the real one would refuse. */
export async function serve(options: StrictProviderOptions): Promise<StrictProvider> {
  const server = await startStrictProvider(options)
  onTestFinished(() => server.close())
  return server
}

/** A folder with a configuration that knows a server of each kind. */
export async function folderFor(chat: StrictProvider, claude: StrictProvider = chat): Promise<string> {
  const folder = await temporaryFolder()
  const config = {
    providers: {
      fake: { type: 'openai-compatible', baseUrl: chat.baseUrl, apiKey: 'test', profile: 'openai-chat' },
      claude: { type: 'anthropic', baseUrl: claude.baseUrl, apiKey: 'test' },
    },
    agent: { model: 'fake/gpt-4.1', tools: ['read_file', 'write_file'] },
  }
  await writeFile(join(folder, 'lango.config.json'), JSON.stringify(config))
  return folder
}

/** Types a line and sends it. */
export function say(terminal: TestTerminal, text: string): void {
  terminal.type(text)
  terminal.key('enter')
}
