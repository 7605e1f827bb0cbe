/** The pieces that statements for PostgreSQL are made of. */
import { type SqlValue, type Statement, sql } from './sql-database.js'

/** A query of a `WITH`. */
export type NamedQuery = readonly [name: string, text: string, ...parameters: SqlValue[]]

/** `WITH` queries and their parameters, in order. */
export class Query {
  readonly #texts: string[] = []
  readonly #parameters: SqlValue[] = []

  with(name: string, text: string, ...parameters: readonly SqlValue[]): void {
    this.#texts.push(`${name} (${text})`)
    this.#parameters.push(...parameters)
  }

  select(text: string): Statement {
    return sql(`WITH ${this.#texts.join(',\n')}\n${text}`, ...this.#parameters)
  }
}

/** The elements of a JSON array, given as the parameter. */
export function eachOf(name: string): string {
  return `json_array_elements(CAST(? AS json)) AS ${name}`
}
