/**
 * The packages that do not come with Lango: what each is for, and how it is loaded. Each is an optional peer dependency
 * in package.json, loaded when it is first needed; a missing one is one sentence with the line that installs it.
 */
import { AgentError, type AgentErrorCode, messageOf } from './errors.js'

export interface OptionalPackages {
  /** The subject of the sentence about what is missing. */
  readonly what: string
  /** As a package manager takes them: the name and the versions that work, without characters that shells read. */
  readonly install: readonly string[]
  /** Packages that serve as well as one of these, by its name. */
  readonly instead?: Readonly<Record<string, string>>
}

/** By the name that `lango add` takes. */
export const OPTIONAL_PACKAGES = {
  openai: { what: 'A model of OpenAI or of a compatible server', install: ['openai@6'] },
  anthropic: { what: 'A Claude model', install: ['@anthropic-ai/sdk@1'] },
  gemini: { what: 'A Gemini model', install: ['@google/genai@2'] },
  bedrock: { what: 'A model on Amazon Bedrock', install: ['@aws-sdk/client-bedrock-runtime@3'] },
  'bedrock-claude': { what: 'A Claude model on Amazon Bedrock', install: ['@anthropic-ai/bedrock-sdk@1'] },
  'vertex-claude': { what: 'A Claude model on Vertex AI', install: ['@anthropic-ai/vertex-sdk@1'] },
  postgres: { what: 'A store in PostgreSQL', install: ['pg@8'] },
  dbos: { what: 'Dispatching runs by DBOS', install: ['@dbos-inc/dbos-sdk@5'] },
  mcp: { what: 'The Model Context Protocol', install: ['@modelcontextprotocol/sdk@1'] },
  acp: { what: 'The Agent Client Protocol', install: ['@agentclientprotocol/sdk@2'] },
  terminal: { what: 'The chat on a whole terminal', install: ['@earendil-works/pi-tui@0.74'] },
  telemetry: {
    what: 'Sending traces',
    install: [
      '@opentelemetry/exporter-trace-otlp-http@0.205',
      '@opentelemetry/sdk-trace-base@2',
      '@opentelemetry/resources@2',
    ],
    // Version 3 has no sdk-trace-base.
    instead: { '@opentelemetry/sdk-trace-base': '@opentelemetry/sdk-trace' },
  },
} as const satisfies Readonly<Record<string, OptionalPackages>>

export type OptionalName = keyof typeof OPTIONAL_PACKAGES

export const OPTIONAL_NAMES = Object.keys(OPTIONAL_PACKAGES) as OptionalName[]

/** `@scope/name` of `@scope/name@6`. */
export function packageOf(versioned: string): string {
  return versioned.slice(0, versioned.indexOf('@', 1))
}

/** Loads packages at their first use. Missing ones are an error that says how to install them. */
export async function loadOptional<Module>(
  name: OptionalName,
  load: () => Promise<Module>,
  code: AgentErrorCode = 'invalid-config',
): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    const { what, install } = OPTIONAL_PACKAGES[name]
    const names = install.map(packageOf)
    const line = `npm install ${install.join(' ')}`
    const are = names.length === 1 ? 'the package' : 'the packages'
    const message = isMissing(cause, names)
      ? `${what} needs ${are} ${names.join(', ')}; install with: ${line}`
      : `${what} needs ${are} ${names.join(', ')}, which cannot be loaded (${messageOf(cause)}); install again with: ${line}`
    throw new AgentError(code, message, { cause, details: { packages: names, install: line, add: name } })
  }
}

/** Node, Bun and bundlers quote the package, whichever file of it was asked for. */
function isMissing(error: unknown, names: readonly string[]): boolean {
  const { code } = error as { code?: unknown }
  const words = messageOf(error)
  return (
    /^(ERR_)?MODULE_NOT_FOUND$/.test(String(code)) &&
    names.some(name => words.includes(`'${name}'`) || words.includes(`'${name}/`))
  )
}
