import type { KeyedProvider } from '../src/config/default-model.js'
import type { EnvironmentVariable } from '../src/config/environment.js'

export function renderConfigDocs(parts: {
  schema: Record<string, unknown>
  variables: readonly EnvironmentVariable[]
  providers: readonly KeyedProvider[]
}): string
