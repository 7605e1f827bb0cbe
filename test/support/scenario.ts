import { describe, test } from 'vitest'

/**
 * The specification as tests. Titles are the specification's own, letter for letter; `npm run check`
 * compares them with `docs/spec.md` and with the report of the test run.
 */
export function requirement(title: string, body: () => void): void {
  describe(`Requirement: ${title}`, body)
}

/** One scenario of a requirement. Its title must be in `docs/spec.md`. */
export function scenario(title: string, body: () => void | Promise<void>): void {
  test(`Scenario: ${title}`, body)
}
