/** Writes the entries of package.json to `outDir`, and what they share to `chunks/` in it. */
export declare function buildCode(outDir: string): Promise<void>
