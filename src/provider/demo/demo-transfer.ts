/** ADK tells a model of other agents in words; this reads them again, so that the demo can hand over, too. */

/** ADK's tool for handing over. */
export const TRANSFER = 'transfer_to_agent'

export interface Transfer {
  name: typeof TRANSFER
  args: { agentName: string }
}

/** The agent whose name or description shares the most words with what the user said. */
export function transferFor(
  instruction: string,
  toolNames: readonly string[],
  wordsOf: (text: string) => string[],
  spoken: ReadonlySet<string>,
): Transfer | undefined {
  if (!toolNames.includes(TRANSFER)) return undefined
  const own = /internal name is "([^"]+)"/.exec(instruction)?.[1]
  const agents = [...instruction.matchAll(/^Agent name: (.+)\nAgent description: (.*)$/gm)]
    .map(([, name = '', description = '']) => ({ name, description }))
    .filter(({ name }) => name !== own)
    .map(({ name, description }) => ({
      name,
      score: new Set(wordsOf(`${name} ${description}`).filter(word => spoken.has(word))).size,
    }))
    .sort((one, other) => other.score - one.score)
  const [best] = agents
  return best && best.score > 0 ? { name: TRANSFER, args: { agentName: best.name } } : undefined
}
