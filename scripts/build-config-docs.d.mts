import type { EnvironmentVariable } from '../src/config/environment.js'
import type { KeyedProvider } from '../src/provider/vendors.js'

export function renderConfigDocs(parts: {
  schema: Record<string, unknown>
  variables: readonly EnvironmentVariable[]
  providers: readonly KeyedProvider[]
}): string
