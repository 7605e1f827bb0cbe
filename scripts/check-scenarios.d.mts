export interface ListedScenario {
  requirement: string
  title: string
  state: string
}
export interface TestedScenario {
  requirement: string
  title: string
  passed: boolean
}
export function readSpec(markdown: string): ListedScenario[]
export function readReport(report: unknown): TestedScenario[]
export function compare(listed: readonly ListedScenario[], tested: readonly TestedScenario[]): string[]
