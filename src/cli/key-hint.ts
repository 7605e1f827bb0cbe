/** The line that makes a real model answer instead of the demo. */
export function keyHint(platform: string = process.platform): string {
  return platform === 'win32' ? 'set OPENAI_API_KEY=…' : 'export OPENAI_API_KEY=…'
}

/** What is said when the demo model answers. */
export function demoNotice(isChosen: boolean): string {
  const others = 'or GEMINI_API_KEY, ANTHROPIC_API_KEY, MISTRAL_API_KEY, DEEPSEEK_API_KEY'
  if (isChosen) return 'The offline demo model answers, as it was asked to.'
  return `No key was found, so the offline demo model answers. Set one: ${keyHint()} (${others})`
}
