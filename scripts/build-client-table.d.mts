export const CAPABILITIES: {
  readonly [K in
    | 'several turns'
    | 'streaming'
    | 'agent tools'
    | 'client tools'
    | 'structured output'
    | 'approval'
    | 'error'
    | 'abort'
    | 'reconnect'
    | 'once']: string
}
export type Capability = keyof typeof CAPABILITIES
export interface ClientCell {
  passed: number
  failed: number
  without?: string
}
export interface ClientRow {
  client: string
  version: string
  cells: Partial<Record<Capability, ClientCell>>
}
export function readRows(report: unknown): { rows: ClientRow[]; problems: string[] }
export function renderTable(rows: readonly ClientRow[]): string
export function withTable(page: string, table: string): string
export function updateTable(options: { report: unknown; pagePath: string; write: boolean }): string[]
