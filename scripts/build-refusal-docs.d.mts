export function renderRefusalDocs(parts: {
  refusals: Readonly<Record<string, Readonly<Record<string, string>>>>
  textOf: (code: string) => string
}): string
