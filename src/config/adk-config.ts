/** Settings of the agent and its runs: what is passed to ADK, the limits, and which of them exclude each other. */

import { z } from 'zod'
import { isRecord } from '../base/is-record.js'
import {
  anyText,
  flag,
  group,
  hasMethods,
  list,
  live,
  made,
  oneOf,
  text,
  wholeNumber,
} from './schema-parts.js'

/** What ADK's runner takes: an agent, a workflow, and a node, a tool or a function as a workflow of one. */
function isRunnable(value: unknown): boolean {
  return (
    typeof value === 'function' ||
    (hasMethods(value, ['runAsync']) && Array.isArray(Reflect.get(value as object, 'subAgents'))) ||
    hasMethods(value, ['run', 'runImpl']) ||
    hasMethods(value, ['runAsync', '_getDeclaration'])
  )
}

/** As much of an ADK `App` as can be seen without loading ADK. */
export interface AdkApp {
  name: string
  rootAgent: object
  plugins: object[]
}

/** Whether a value is an ADK `App`. By its shape: this file does not load ADK, and there may be two copies of it. */
export function isAdkApp(value: unknown): value is AdkApp {
  if (!isRecord(value) || hasMethods(value, ['runAsync'])) return false
  return Boolean(value.rootAgent) && Array.isArray(value.plugins)
}

/** Whether a value has the mark of one of ADK's classes, which is the same in all copies of ADK. */
export function isBranded(value: unknown, name: string): boolean {
  return isRecord(value) && Symbol.for(`google.adk.${name}`) in value
}

export const adkApp = z.custom<AdkApp>(isAdkApp, { error: 'must be an ADK app' })

export const adkAgent = z.custom<object>(value => isRunnable(value) || isAdkApp(value), {
  error: 'must be an agent, a workflow or an app of ADK',
})

/** An object that is passed to ADK. */
const adkObject = z.custom<object>(isRecord, { error: 'must be an object' })

/** ADK's settings of a run. Only their types are checked. */
const runConfigSchema = group({
  speechConfig: adkObject.optional().describe('For live agents.'),
  responseModalities: list(anyText).optional().describe('For live agents.'),
  saveInputBlobsAsArtifacts: flag.optional().describe('Store files of a message in the artifact service.'),
  supportCfc: flag.optional().describe('Compositional function calling; experimental in ADK.'),
  streamingMode: oneOf(['sse', 'none']).optional().describe('Default `sse`.'),
  outputAudioTranscription: adkObject.optional().describe('For live agents.'),
  inputAudioTranscription: adkObject.optional().describe('For live agents.'),
  enableAffectiveDialog: flag.optional().describe('For live agents.'),
  proactivity: adkObject.optional().describe('For live agents.'),
  realtimeInputConfig: adkObject.optional().describe('For live agents.'),
  contextWindowCompression: adkObject.optional().describe('For live agents.'),
  maxLlmCalls: z
    .int({ error: 'must be a whole number' })
    .optional()
    .describe(
      'Maximum number of model calls in one run; 0 or less for no limit. Default: 500 and the limits of the agent.',
    ),
  pauseOnToolCalls: flag.optional().describe('End the run at every tool call.'),
  plainTextToolConfirmation: flag
    .optional()
    .describe('Accept "yes" or "no" as the answer to an ADK confirmation.'),
  allowRemoteToolConfirmation: flag.optional().describe('Accept answers to confirmations from an A2A peer.'),
  remoteDelivered: flag.optional().describe('Set by ADK’s A2A executor.'),
})

/** Options of ADK's runner. */
export const adkSchema = group({
  plugins: list(live<object>('beforeRunCallback', 'must be an ADK plugin'))
    .optional()
    .describe('Plugins, called after Lango’s own.'),
  artifactService: made<object>(['saveArtifact', 'loadArtifact'], 'must be an ADK artifact service')
    .optional()
    .describe('Stores files.'),
  memoryService: made<object>(['addSessionToMemory', 'searchMemory'], 'must be an ADK memory service')
    .optional()
    .describe('Memory of agents across sessions.'),
  credentialService: made<object>(['loadCredential', 'saveCredential'], 'must be an ADK credential service')
    .optional()
    .describe('Stores credentials of tools.'),
  resumabilityConfig: group({
    isResumable: flag
      .default(false)
      .describe('A function response goes to the agent that made the call. Default false.'),
  })
    .optional()
    .describe('Where the answer to a call that waits continues.'),
  contextCompactors: list(made<object>(['shouldCompact', 'compact'], 'must be an ADK context compactor'))
    .optional()
    .describe('Compaction by ADK, for the agents of `agent`. An agent made in code has its own.'),
  runConfig: runConfigSchema.optional().describe('ADK’s settings of a run.'),
})

const LOOP_ERROR = 'must be false, or an object with `warnAfter` and `stopAfter`'

/** The limits of a run. */
export const limitsSchema = group({
  maxTurns: wholeNumber(1)
    .optional()
    .describe('Maximum number of turns with tool calls in one run. Default 25, or 50 with several agents.'),
  maxDelegations: wholeNumber(1)
    .optional()
    .describe('Maximum number of transfers between agents in one run. Default 32.'),
  maxCallsPerAnswer: wholeNumber(1)
    .optional()
    .describe(
      'Maximum number of tool calls in one answer of a model. Further calls are neither stored nor run, and the model reads how many. Default 128.',
    ),
  loop: z
    .union(
      [
        z.literal(false),
        group({
          warnAfter: wholeNumber(2)
            .optional()
            .describe('Equal calls with equal results in a row before the model is warned. Default 3.'),
          stopAfter: wholeNumber(2)
            .optional()
            .describe('Equal calls with equal results in a row before the run ends. Default 5.'),
        }),
      ],
      { error: LOOP_ERROR },
    )
    .optional()
    .describe(
      'When a model that repeats a call and gets the same result is warned and stopped, as `{ warnAfter: 3, stopAfter: 5 }` (the defaults), or `false` for never.',
    ),
})

const ARTIFACTS_ERROR =
  'must be "store", "memory:", the path of a folder, or an object with `place` and `maxBytes`'

/** Where artifacts are kept. */
export const artifactsSchema = z.union(
  [
    text(),
    group({
      place: text().optional().describe('`store`, `memory:`, or the path of a folder. Default `store`.'),
      maxBytes: wholeNumber(1).optional().describe('Maximum size of one artifact. Default 33554432.'),
    }),
  ],
  { error: ARTIFACTS_ERROR },
)

interface AgentSources {
  agent?: unknown
  rootAgent?: unknown
  app?: unknown
  adk?: { contextCompactors?: readonly unknown[] | undefined } | undefined
  limits?: { loop?: false | { warnAfter?: number | undefined; stopAfter?: number | undefined } | undefined }
}

/** What single keys cannot say: there is one agent, and its limits fit each other. */
export function refuseContradictions(config: AgentSources, context: z.RefinementCtx): void {
  const refuse = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
  const { agent, rootAgent, app, adk, limits } = config
  const isApp = isAdkApp(app)
  if (agent && rootAgent) refuse(['rootAgent'], 'cannot be combined with `agent`: keep one of them')
  if (isApp && (agent || rootAgent))
    refuse(
      ['app'],
      'cannot be combined with `agent` or `rootAgent`, because it has an agent: name it by a text',
    )
  if (adk?.contextCompactors?.length && !agent)
    refuse(['adk', 'contextCompactors'], 'is only for `agent`: give an agent made in code its own compactors')
  const { warnAfter, stopAfter } = limits?.loop || {}
  if (warnAfter !== undefined && stopAfter !== undefined && warnAfter >= stopAfter)
    refuse(['limits', 'loop', 'warnAfter'], 'must be less than `limits.loop.stopAfter`')
}
