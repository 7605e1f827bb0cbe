import { createHash } from 'node:crypto'

const MAX_LENGTH = 64

/**
 * Names for the tools of servers, `server_tool`: made of what every vendor allows, at most 64 characters, each
 * given once. The same tools in the same order get the same names.
 */
export class McpNames {
  readonly #given = new Set<string>()

  give(server: string, tool: string): string {
    const wanted = shortened(legal(`${server}_${tool}`), `${server}\0${tool}`)
    let name = wanted
    for (let number = 2; this.#given.has(name); number++) {
      const suffix = `_${number}`
      name = wanted.slice(0, MAX_LENGTH - suffix.length) + suffix
    }
    this.#given.add(name)
    return name
  }
}

function legal(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9_-]/g, '_')
  return /^[A-Za-z_]/.test(plain) ? plain : `_${plain}`
}

/** A name that is too long ends in a print of the whole one, so that two of them stay two. */
function shortened(name: string, whole: string): string {
  if (name.length <= MAX_LENGTH) return name
  const print = createHash('sha256').update(whole).digest('hex').slice(0, 8)
  return `${name.slice(0, MAX_LENGTH - print.length - 1)}_${print}`
}
