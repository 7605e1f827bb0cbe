/** What is in the way of publishing `tag`; nothing when it can be published. */
export declare function releaseProblems(
  tag: string,
  files: {
    manifest: { version: string; repository?: unknown }
    lock: { version: string }
    changelog: string
    schema: number
    fixtures: readonly string[]
  },
): string[]

/** The number of migrations, which is the version of the schema. */
export declare function schemaIn(source: string): number
