import { readFileSync } from 'node:fs'

/** The version in package.json. */
export function version(): string {
  return manifest().version
}

/** The versions of optional packages that Lango works with, as package.json has them. */
export function peerRange(name: string): string | undefined {
  return manifest().peerDependencies[name]
}

function manifest(): { version: string; peerDependencies: Readonly<Record<string, string>> } {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
}
