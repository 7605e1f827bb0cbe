/** A text without the byte order mark that editors on Windows write at the start of a file. */
export function withoutBom(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text
}
