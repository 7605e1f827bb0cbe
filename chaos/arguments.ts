/** Arguments of the programs in `chaos/` and `simulate/`. Each function throws a `RangeError` with what is expected. */

export function isOn(name: string, text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on'
  throw new RangeError(`--${name} must be on or off, not "${text}".`)
}

export function positive(name: string, text: string, isWhole = false): number {
  const value = Number(text)
  if (value > 0 && (isWhole ? Number.isSafeInteger(value) : Number.isFinite(value))) return value
  throw new RangeError(`--${name} must be a ${isWhole ? 'whole ' : ''}number greater than 0, not "${text}".`)
}

/** Some of the known names, separated by commas. */
export function namedIn<Name extends string>(option: string, text: string, known: readonly Name[]): Name[] {
  return text.split(',').map(name => {
    const found = known.find(each => each === name.trim())
    if (found) return found
    throw new RangeError(`--${option} knows no "${name}". Choose among: ${known.join(', ')}.`)
  })
}
