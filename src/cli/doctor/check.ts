/** What one check of the installation found. */
export interface Check {
  name: string
  status: 'ok' | 'warn' | 'fail'
  message: string
  /** What to do about it. */
  fix?: string
}
