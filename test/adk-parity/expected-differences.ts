// Every difference from bare ADK, with its reason. `parity.test.ts` fails on a difference that is not listed here, and on an
// entry that no longer holds. `docs/adk.md` shows the table.
import type { Way } from './parity.js'

export interface ExpectedDifference {
  /** `better`: bare ADK fails or loses something here. `differs`: by design. */
  verdict: 'better' | 'differs'
  reason: string
  /** Names of `compare.ts`. */
  differences: readonly string[]
  cases: readonly string[]
  /** Default: both. */
  ways?: readonly Exclude<Way, 'bare'>[]
}

/** May occur in every case: towards Gemini, neighbours of one role are sent as one content. */
export const EVERYWHERE = ['roles alternate']

export const EXPECTED_DIFFERENCES: readonly ExpectedDifference[] = [
  {
    verdict: 'differs',
    reason:
      'An event with a state delta and nothing else changes the state and is no part of the history (ADR 0003).',
    differences: ['events of state alone'],
    cases: [
      'before agent sets state',
      'after agent sets state',
      'a sequence that ends in an agent of state alone',
    ],
  },
  {
    verdict: 'differs',
    reason:
      'The runtime streams by default, and ADK calls `afterModelCallback` for every part; `adk.runConfig.streamingMode: none` turns it off.',
    differences: ['tool and callback calls'],
    cases: ['every callback observes', 'every method of a plugin observes'],
    ways: ['runtime'],
  },
  {
    verdict: 'differs',
    reason:
      'The runtime streams by default, and ADK calls `afterModelCallback` for every part; `adk.runConfig.streamingMode: none` turns it off.',
    differences: ['events', 'state'],
    cases: ['after model sets state and metadata'],
    ways: ['runtime'],
  },
  {
    verdict: 'better',
    reason:
      'An event is stored as the model wrote it; in ADK’s memory a callback that changes the arguments changes the stored event.',
    differences: ['events'],
    cases: ['before tool changes the arguments'],
  },
  {
    verdict: 'better',
    reason:
      'A call that a failing callback left open is repaired; bare ADK sends it unanswered and is refused.',
    differences: ['events', 'model calls', 'refused request', 'request contents', 'text'],
    cases: ['a tool callback that throws'],
    ways: ['adapters'],
  },
  {
    verdict: 'better',
    reason:
      'The run ends with the error of the callback, and its call is closed; bare ADK sends it unanswered and is refused.',
    differences: ['events', 'refused request'],
    cases: ['a tool callback that throws'],
    ways: ['runtime'],
  },
  {
    verdict: 'differs',
    reason:
      'An answer without content is stored without content; ADK stores an empty text, which it then leaves out of requests.',
    differences: ['events'],
    cases: ['a tool that escalates, after which the model says nothing'],
    ways: ['runtime'],
  },
  {
    verdict: 'better',
    reason: 'An empty answer is requested once more.',
    differences: ['events', 'model calls', 'text'],
    cases: ['an empty answer', 'a text before an empty answer'],
  },
  {
    verdict: 'differs',
    reason: 'An empty answer is requested once more; only the runtime knows that a loop has ended.',
    differences: ['events', 'model calls', 'text'],
    cases: ['a tool that escalates, after which the model says nothing'],
    ways: ['adapters'],
  },
  {
    verdict: 'better',
    reason: 'The history is repaired; bare ADK’s request is refused.',
    differences: ['events', 'failure', 'model calls', 'refused request', 'request contents', 'text'],
    cases: ['a confirmation beside another tool'],
  },
  {
    verdict: 'better',
    reason: 'Roles alternate; bare ADK sends a text of the model and then its call, and is refused.',
    differences: ['events', 'failure', 'model calls', 'refused request', 'text'],
    cases: ['a loop that counts in the state'],
  },
  {
    verdict: 'differs',
    reason:
      'In the runtime a request extends the one before: an answer that comes late is announced at the end (ADR 0043).',
    differences: ['request contents'],
    cases: ['a long-running tool with a ticket, answered later', 'a credential that a tool asks for'],
    ways: ['runtime'],
  },
  {
    verdict: 'better',
    reason: 'ADK drops the response that asks, and refuses its answer; Lango restores it.',
    differences: ['events', 'failure', 'model calls', 'text', 'tool and callback calls'],
    cases: ['a confirmation that a tool asks for itself'],
    ways: ['adapters'],
  },
  {
    verdict: 'better',
    reason: 'ADK drops the response that asks, and refuses its answer; in Lango the run continues.',
    differences: ['events', 'failure', 'model calls', 'text', 'tool and callback calls'],
    cases: ['a confirmation that a tool asks for itself'],
    ways: ['runtime'],
  },
  {
    verdict: 'better',
    reason: 'Results are made JSON; bare ADK fails on a big number and sends a map as an empty object.',
    differences: ['events', 'failure', 'model calls', 'text'],
    cases: ['a function that returns a date, a map and a big number'],
  },
  {
    verdict: 'better',
    reason:
      'A streamed text and the call after it are one answer; bare ADK stores two, and the next request is refused.',
    differences: ['events', 'failure', 'model calls', 'refused request', 'text'],
    cases: ['streamed text and calls', 'streamed answers and callbacks'],
  },
  {
    verdict: 'better',
    reason:
      'A tool that does not exist is answered with the names of those that do; bare ADK’s next request is refused.',
    differences: ['events', 'failure', 'model calls', 'refused request', 'request contents', 'text'],
    cases: ['a call of a tool that does not exist'],
  },
  {
    verdict: 'better',
    reason: 'The model is given the names of the agents, once (ADR 0004).',
    differences: ['events', 'failure', 'request contents'],
    cases: ['a transfer to an agent that does not exist'],
    ways: ['runtime'],
  },
  {
    verdict: 'better',
    reason:
      'The error of a blocked request is Lango’s, with its code; ADK stores an event with the vendor’s code.',
    differences: ['events'],
    cases: ['an answer that is blocked'],
  },
  {
    verdict: 'better',
    reason: 'A truncation that splits a pair is repaired; bare ADK’s request is refused.',
    differences: ['failure', 'model calls', 'refused request', 'text', 'tool and callback calls'],
    cases: ['a compactor that truncates'],
  },
  {
    verdict: 'differs',
    reason:
      'A model object that the program made is used as it is, without Lango’s repair; give its name instead.',
    differences: ['a model outside Lango'],
    cases: [
      'a model chosen by a router',
      'a model as an object',
      'a compactor whose summaries a model writes',
    ],
    ways: ['runtime'],
  },
  {
    verdict: 'differs',
    reason:
      'A model object that the program made is used as it is, without Lango’s repair; give its name instead.',
    // Its calls are received by another server, and counted after the others.
    differences: ['model calls'],
    cases: ['a compactor whose summaries a model writes'],
    ways: ['runtime'],
  },
]
