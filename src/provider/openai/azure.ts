/**
 * OpenAI's models on Azure: by the v1 API, which is OpenAI's own under another address, or by a dated version of the
 * older API, whose paths name the deployment.
 */
import type OpenAI from 'openai'
import { AgentError } from '../../errors.js'
import type { ProviderSettings } from '../provider-settings.js'
import { neededValue, readVariable } from '../vendor-row.js'
import { VENDORS } from '../vendors.js'

export interface AzureTarget {
  /** The address of the resource; absent as long as it is not configured. */
  endpoint?: string
  /** A version in the old form; absent for the v1 API. */
  datedVersion?: string
  /** What the v1 API may be asked for besides: `preview`. */
  variant?: string
  hasResponses: boolean
}

/** Where and how Azure is reached. */
export function azureTarget(settings: ProviderSettings): AzureTarget {
  const { env, apiVersion } = settings
  const version = apiVersion ?? readVariable(env, ['OPENAI_API_VERSION', 'AZURE_OPENAI_API_VERSION'])
  const address = neededValue(VENDORS.azure, 'baseUrl', env, settings)
  const endpoint = address === undefined ? {} : { endpoint: resourceOf(address) }
  if (version === undefined || version === 'v1') return { ...endpoint, hasResponses: true }
  if (!/^\d{4}-/.test(version)) return { ...endpoint, variant: version, hasResponses: true }
  return { ...endpoint, datedVersion: version, hasResponses: version >= FIRST_WITH_RESPONSES }
}

const FIRST_WITH_RESPONSES = '2025-03-01'

/** The address of the resource. People also copy it with the path of an API. */
function resourceOf(address: string): string {
  const resource = URL.canParse(address) ? address.replace(/\/+$/, '').replace(/\/openai(\/v1)?$/, '') : ''
  if (/^https?:/.test(resource) && !/\/deployments\/|[?#]/.test(resource)) return resource
  throw new AgentError(
    'invalid-config',
    `The endpoint of Azure OpenAI is "${address.replace(/\?.*/s, '')}". It must be the address of the resource alone, such as ` +
      `${VENDORS.azure.needs[0].example}; the deployment is the name of the model, as in azure/NAME.`,
  )
}

/** A client for a key, or for a token of Microsoft's accounts. */
export async function azureClient(
  sdk: typeof import('openai'),
  settings: ProviderSettings,
  key: string | undefined,
  fetch: typeof globalThis.fetch,
): Promise<OpenAI> {
  const { endpoint, datedVersion: apiVersion, variant } = azureTarget(settings)
  const token = readVariable(settings.env, VENDORS.azure.accountVariables[0]) ?? ''
  const common = {
    // What the environment says of OpenAI's accounts is not for Azure.
    organization: null,
    project: null,
    maxRetries: 0,
    timeout: settings.idleTimeoutMs,
    logLevel: 'off' as const,
    fetch,
  }
  if (apiVersion !== undefined) {
    const credential = key === undefined ? { azureADTokenProvider: async () => token } : { apiKey: key }
    const defaultHeaders = { ...settings.headers }
    return new sdk.AzureOpenAI({
      ...common,
      ...credential,
      apiVersion,
      baseURL: `${endpoint}/openai`,
      defaultHeaders,
    })
  }
  return new sdk.OpenAI({
    ...common,
    apiKey: key ?? token,
    baseURL: `${endpoint}/openai/v1`,
    ...(variant === undefined ? {} : { defaultQuery: { 'api-version': variant } }),
    defaultHeaders: {
      ...(key === undefined ? {} : { authorization: null, 'api-key': key }),
      ...settings.headers,
    },
  })
}
