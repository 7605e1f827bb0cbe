/** Puts the packed package into a folder as an installation would. */
export function installPackage(folder: string, tarball?: string): void
