/** How alike two words are, for words that were misspelt: letters left out, added, replaced or exchanged. */

/** From 1 for equal words down to 0 for words that are not alike. Longer words may differ in two letters. */
export function similarity(one: string, other: string): number {
  const longest = Math.max(one.length, other.length)
  const most = longest < 8 ? 1 : 2
  if (Math.abs(one.length - other.length) > most) return 0
  const edits = editDistance(one, other, most)
  return edits > most ? 0 : 1 - edits / longest
}

/** How many letters differ, neighbours that were exchanged counting once; more than `most` when there are more. */
function editDistance(one: string, other: string, most: number): number {
  let [twoBefore, before]: number[][] = [[], Array.from({ length: other.length + 1 }, (_, index) => index)]
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1]
      const isSwapped = row > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      const edits = Math.min(
        (before?.[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (before?.[column - 1] ?? 0) + (isSame ? 0 : 1),
      )
      current.push(isSwapped ? Math.min(edits, (twoBefore?.[column - 2] ?? 0) + 1) : edits)
    }
    if (Math.min(...current) > most) return most + 1
    twoBefore = before
    before = current
  }
  return before?.[other.length] ?? most + 1
}
