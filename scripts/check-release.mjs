// Whether the tree can be published as a version: the last question before `npm publish`, in the release workflow.
//
//   node scripts/check-release.mjs v0.2.0
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** What is in the way of publishing `tag`; nothing when it can be published. */
export function releaseProblems(tag, { manifest, lock, changelog }) {
  const { version, repository } = manifest
  const wrong = []
  if (tag !== `v${version}`) wrong.push(`The tag is ${tag}, but package.json has the version ${version}.`)
  if (lock.version !== version)
    wrong.push(`package-lock.json has the version ${lock.version}: run npm install --package-lock-only.`)
  if (repository === undefined)
    wrong.push(
      'package.json has no repository: npm compares it with the provenance, and refuses the package.',
    )
  const section = sectionOf(changelog, version)
  if (section === undefined) wrong.push(`CHANGELOG.md has no section [${version}].`)
  else if (!/^- /m.test(section)) wrong.push(`The section [${version}] of CHANGELOG.md has no entry.`)
  else if (!/^ - \d{4}-\d{2}-\d{2}\n/.test(section))
    wrong.push(`The section [${version}] of CHANGELOG.md has no date (## [${version}] - YYYY-MM-DD).`)
  if (/^- /m.test(sectionOf(changelog, 'Unreleased') ?? ''))
    wrong.push('CHANGELOG.md has entries under [Unreleased]: move them to the version.')
  return wrong
}

/** The rest of a section's title, and its text. */
function sectionOf(changelog, name) {
  return changelog
    .split(/^## /m)
    .find(section => section.startsWith(`[${name}]`))
    ?.slice(name.length + 2)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const read = name => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')
  const problems = releaseProblems(process.argv[2] ?? '', {
    manifest: JSON.parse(read('package.json')),
    lock: JSON.parse(read('package-lock.json')),
    changelog: read('CHANGELOG.md'),
  })
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
  console.log(`${process.argv[2]} can be published`)
}
