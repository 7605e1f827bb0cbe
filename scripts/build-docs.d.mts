export function buildDocs(options?: { folder?: string; root?: string }): Promise<boolean>
