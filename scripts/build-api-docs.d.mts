export function renderApiDocs(root?: string): string
