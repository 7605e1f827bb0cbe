/** The server's data as the client hands it out: the page knows the server by `src/client` only. */
import type { LangoClient } from '../../../src/client/client.js'

type Answer<Name extends keyof LangoClient> = LangoClient[Name] extends (
  ...parameters: never[]
) => Promise<infer Value>
  ? Value
  : never

export type RunInspection = Answer<'inspect'>
export type InspectedStep = RunInspection['steps'][number]
export type InspectedCall = RunInspection['calls'][number]
export type StepRepair = InspectedStep['repairs'][number]
export type StepCut = InspectedStep['cuts'][number]
export type StoredMessage = Answer<'messages'>['messages'][number]
export type StoredPart = StoredMessage['parts'][number]
export type SessionLint = Answer<'lint'>
export type ProfileLint = SessionLint['profiles'][number]
export type LintFinding = ProfileLint['findings'][number]
export type ModelChoice = Answer<'models'>['models'][number]
