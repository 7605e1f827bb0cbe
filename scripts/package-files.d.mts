/** The files that are not expected, and the lines of the list that no file fits. */
export declare function packageProblems(names: readonly string[]): string[]
