// What the tarball may contain, and must. A file that fits no line is a mistake of `files` in package.json or of the build:
// a digest, a test, a database, a source map.
const FILES = [
  /^(package\.json|README\.md|CHANGELOG\.md|SECURITY\.md|LICENSE)$/,
  /^docs\/[a-z0-9-]+\.md$/i,
  /^examples\/[a-z0-9-]+\.ts$/,
  /^bin\/lango\.mjs$/,
  // The code: entries, the command, and what they share.
  /^dist\/(index|cli\/main|entries\/[a-z-]+)\.js$/,
  /^dist\/chunks\/[\w.-]+\.js$/,
  // One file of types for each module.
  /^dist\/(?!web\/|.*\.test\.d\.ts$)([a-z0-9-]+\/)*[a-z0-9-]+\.d\.ts$/,
  // The page and the documentation, also compressed.
  /^dist\/web\/[a-z-]+\.(html|js|svg|png|webmanifest|txt)(\.br|\.gz)?$/,
  /^dist\/web\/assets\/[\w.-]+\.(js|css|html|woff2?|svg)(\.br|\.gz)?$/,
  /^dist\/web\/docs\/(adr\/)?[\w.-]+\.(html|js|css|json|txt|svg|md)(\.br|\.gz)?$/,
  /^dist\/web\/docs\/images\/[a-z0-9-]+\.(png|svg)$/,
]

/** The files that are not expected, and the lines of the list that no file fits. */
export function packageProblems(names) {
  const unexpected = names.filter(name => !FILES.some(pattern => pattern.test(name)))
  const missing = FILES.filter(pattern => !names.some(name => pattern.test(name)))
  return [
    ...unexpected.map(
      name => `The package has ${name}, which is not expected: see scripts/package-files.mjs.`,
    ),
    ...missing.map(pattern => `The package has no file that fits ${pattern}.`),
  ]
}
