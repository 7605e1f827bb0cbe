/** Writes entries, by default those of package.json, to `outDir`, and what they share to `chunks/` in it. */
export declare function buildCode(outDir: string, names?: readonly string[]): Promise<void>
