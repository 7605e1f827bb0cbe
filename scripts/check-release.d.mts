/** What is in the way of publishing `tag`; nothing when it can be published. */
export declare function releaseProblems(
  tag: string,
  files: {
    manifest: { version: string; repository?: unknown }
    lock: { version: string }
    changelog: string
  },
): string[]
