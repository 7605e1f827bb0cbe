/**
 * How the chat is drawn: bold, dim, and the basic colours that can be read on a dark and on a light ground. Never
 * a ground of its own, never yellow or white.
 */
import type { EditorTheme, MarkdownTheme, SelectListTheme } from '@earendil-works/pi-tui'

export type Paint = (text: string) => string

export interface Theme {
  bold: Paint
  dim: Paint
  italic: Paint
  underline: Paint
  /** Messages of the user, the selected choice, code. */
  accent: Paint
  good: Paint
  bad: Paint
  /** What should be noticed and is no failure. */
  notable: Paint
}

/** `colors: false` keeps weight and drops hue. */
export function createTheme(colors: boolean): Theme {
  const hue = (code: number): Paint => (colors ? style(code, 39) : text => text)
  return {
    bold: style(1, 22),
    dim: style(2, 22),
    italic: style(3, 23),
    underline: style(4, 24),
    accent: hue(36),
    good: hue(32),
    bad: hue(31),
    notable: hue(35),
  }
}

/** `wrapCode` breaks a line of code that is too long, so that its rest stays inside the block. */
export function markdownTheme(theme: Theme, wrapCode: (line: string) => string[]): MarkdownTheme {
  const { bold, dim, italic, underline, accent } = theme
  return {
    heading: text => text,
    link: underline,
    linkUrl: dim,
    code: accent,
    codeBlock: text => text,
    codeBlockBorder: text => dim(text.replace(/^```(.*)$/, (_, language) => `─── ${language}`).trimEnd()),
    highlightCode: code => code.split('\n').flatMap(wrapCode),
    quote: text => text,
    quoteBorder: dim,
    hr: dim,
    listBullet: accent,
    bold,
    italic,
    strikethrough: style(9, 29),
    underline,
  }
}

export function selectTheme({ bold, dim, accent }: Theme): SelectListTheme {
  return {
    selectedPrefix: accent,
    selectedText: text => accent(bold(text)),
    description: dim,
    scrollInfo: dim,
    noMatch: dim,
  }
}

export function editorTheme(theme: Theme): EditorTheme {
  return { borderColor: theme.dim, selectList: selectTheme(theme) }
}

function style(on: number, off: number): Paint {
  return text => (text === '' ? '' : `\u001b[${on}m${text}\u001b[${off}m`)
}
