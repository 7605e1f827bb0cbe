export interface PromiseRow {
  promise: string
  file: string
  title: string
  tier: string
}

export interface ReportedTest {
  file: string
  title: string
  status: string
}

export function readGuarantees(markdown: string): string[]
export function readPromises(markdown: string): PromiseRow[]
export function comparePromises(
  guarantees: readonly string[],
  promises: readonly PromiseRow[],
  tests: readonly ReportedTest[],
): string[]
export function readTests(
  report: {
    testResults: { name: string; assertionResults: { fullName: string; status: string }[] }[]
  },
  root: string,
): ReportedTest[]
