// Loaded before a test's process: what has no place in the start of a command cannot be found.
import { register } from 'node:module'

const hook = `
const REFUSED = new RegExp(process.env.REFUSED_PACKAGES)
export async function resolve(specifier, context, next) {
  if (REFUSED.test(specifier)) throw new Error('loaded ' + specifier)
  return next(specifier, context)
}`

register(`data:text/javascript,${encodeURIComponent(hook)}`)
