/** Puts the packed package into a folder as an installation would. */
export function installPackage(folder: string, tarball?: string): void

/** Makes the tarball of what was built in a folder, and returns its path. */
export function pack(folder: string): string
