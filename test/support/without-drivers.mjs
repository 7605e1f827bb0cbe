// Loaded before a test's process: makes the database drivers impossible to find, as if they were not installed.
import { register } from 'node:module'

const hook = `
export async function resolve(specifier, context, next) {
  if (specifier === 'pg' || specifier === '@photostructure/sqlite') {
    const error = new Error("Cannot find package '" + specifier + "'")
    error.code = 'ERR_MODULE_NOT_FOUND'
    throw error
  }
  return next(specifier, context)
}`

register(`data:text/javascript,${encodeURIComponent(hook)}`)
