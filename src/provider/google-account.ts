/** Where requests to Vertex AI go and who pays for them, alike for Gemini and Claude. */
import type { ProviderSettings } from './provider-settings.js'
import { neededValue, readVariable, type VendorRow } from './vendor-row.js'

export interface GoogleAccount {
  project?: string | undefined
  location?: string | undefined
}

/** The project and the place. The platform's own name has a place that serves most models; `gemini` leaves it to its SDK. */
export function googleAccount(settings: ProviderSettings, row: VendorRow | undefined): GoogleAccount {
  const { env, type, location } = settings
  const places = ['GOOGLE_CLOUD_LOCATION', ...(type === 'vertex' ? ['CLOUD_ML_REGION'] : [])]
  return {
    project: neededValue(row, 'project', env, settings) ?? readVariable(env, ['GOOGLE_CLOUD_PROJECT']),
    location: location ?? readVariable(env, places) ?? (type === 'vertex' ? 'global' : undefined),
  }
}

/** A client of Google's library for accounts that sends a token as it is: nothing is read or requested. */
export function tokenClient<Client>(token: string): Client {
  const client = { getRequestHeaders: async () => new Headers({ authorization: `Bearer ${token}` }) }
  // The SDKs call no other method of it.
  return client as Client
}
