/** Builds the page unless it is up to date. Returns whether it was built. */
export function buildWeb(options?: { force?: boolean; onStart?: () => void }): Promise<boolean>
