/** Loaded with the first block of code; a few languages only, because each one is code that must be sent. */
import core from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cpp from 'highlight.js/lib/languages/cpp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import go from 'highlight.js/lib/languages/go'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import markdown from 'highlight.js/lib/languages/markdown'
import python from 'highlight.js/lib/languages/python'
import rust from 'highlight.js/lib/languages/rust'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'

const LANGUAGES = {
  bash,
  c,
  cpp,
  css,
  diff,
  go,
  java,
  javascript,
  json,
  markdown,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml,
}

for (const [name, language] of Object.entries(LANGUAGES)) core.registerLanguage(name, language)

/** A piece of code: text, or a token of a kind around more pieces. */
export type CodePiece = string | { kind: string; pieces: CodePiece[] }

/** The code in pieces, or nothing when the language is not known. */
export function highlight(code: string, language: string): CodePiece[] | undefined {
  if (!core.getLanguage(language)) return undefined
  const { value } = core.highlight(code, { language, ignoreIllegals: true })
  return piecesOf(new DOMParser().parseFromString(value, 'text/html').body)
}

/** The highlighter writes HTML; elements made from it can hold nothing but text and token names. */
function piecesOf(node: Node): CodePiece[] {
  return Array.from(node.childNodes, child =>
    child instanceof Element ? { kind: child.className, pieces: piecesOf(child) } : (child.textContent ?? ''),
  )
}
