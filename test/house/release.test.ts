// The files for publishing and deploying: what is in the tarball, when a version may be published, and what containers,
// workflows and units of systemd promise.
import { execFileSync } from 'node:child_process'
import { accessSync, constants, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { releaseProblems } from '../../scripts/check-release.mjs'
import { packageProblems } from '../../scripts/package-files.mjs'
import { langoProcess } from '../cli/lango.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const ROOT = join(import.meta.dirname, '../..')
const read = (name: string) => readFileSync(join(ROOT, name), 'utf8')

const FILES = [
  'package.json',
  'docs/server.md',
  'examples/quick-start.ts',
  'bin/lango.mjs',
  'dist/index.js',
  'dist/chunks/store.js',
  'dist/store/sql-store.d.ts',
  'dist/web/index.html.br',
  'dist/web/assets/index-BkZQ3qAj.css',
  'dist/web/docs/adr/0001-default-token-budget.html',
  'dist/web/docs/images/chat.png',
]

test('a package with one file of each kind has no problem', () => {
  expect(packageProblems(FILES)).toEqual([])
})

test.each([
  'dist/web/.docs-digest',
  'dist/index.js.map',
  'dist/store/sqlite-file.test.d.ts',
  'dist/lango.db',
  'src/index.ts',
  'test/fixtures/wire.json',
  '.env',
  'docs/adr/0001-default-token-budget.md',
])('a package with %s is reported', name => {
  expect(packageProblems([...FILES, name])).toEqual([expect.stringContaining(name)])
})

test('a package without its code is reported', () => {
  expect(packageProblems(FILES.filter(name => name !== 'dist/index.js'))).toHaveLength(1)
})

const release = {
  manifest: { version: '0.2.0', repository: { type: 'git' } },
  lock: { version: '0.2.0' },
  changelog: '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- More.\n',
}

test('a version may be published when its number is in the tag, both manifests and a dated section of the changelog', () => {
  expect(releaseProblems('v0.2.0', release)).toEqual([])
})

test.each([
  ['The tag is v0.3.0', 'v0.3.0', release],
  ['package-lock.json has the version 0.1.0', 'v0.2.0', { ...release, lock: { version: '0.1.0' } }],
  ['no repository', 'v0.2.0', { ...release, manifest: { version: '0.2.0' } }],
  ['no section [0.2.0]', 'v0.2.0', { ...release, changelog: '## [Unreleased]\n' }],
  ['no entry', 'v0.2.0', { ...release, changelog: '## [0.2.0] - 2026-12-01\n' }],
  ['no date', 'v0.2.0', { ...release, changelog: '## [0.2.0]\n\n- More.\n' }],
  ['[Unreleased]', 'v0.2.0', { ...release, changelog: `## [Unreleased]\n\n- Else.\n\n${release.changelog}` }],
])('a release is refused: %s', (words, tag, wrong) => {
  expect(releaseProblems(tag, wrong)).toEqual([expect.stringContaining(words)])
})

test('the release workflow publishes with provenance, without a token, after the checks of the version', () => {
  const { on, jobs } = parse(read('.github/workflows/release.yml'))
  expect(on).toEqual({ push: { tags: ['v*'] } })
  const { permissions, steps } = jobs.publish
  expect(permissions).toEqual({ contents: 'read', 'id-token': 'write' })
  const commands = steps.flatMap((step: { run?: string }) => step.run ?? [])
  expect(commands.at(-1)).toBe('npm publish --provenance --access public')
  expect(commands).toContain('node scripts/check-release.mjs "$GITHUB_REF_NAME"')
  expect(read('.github/workflows/release.yml')).not.toMatch(/secrets\.|NODE_AUTH_TOKEN/)
})

test('the command of package.json runs in a clone without a build', async () => {
  const { bin, version } = JSON.parse(read('package.json'))
  const cwd = await temporaryFolder()
  const file = join(ROOT, bin.lango)
  expect(() => accessSync(file, constants.X_OK)).not.toThrow()
  expect(await langoProcess(['--version'], { cwd, file })).toEqual({
    code: 0,
    stdout: `${version}\n`,
    stderr: '',
  })
})

test('the tests run on every supported major of Node', () => {
  const { jobs } = parse(read('.github/workflows/ci.yml'))
  expect(jobs.tests.strategy.matrix.node).toEqual([20, 22, 24])
})

test('actions and base images are named by the hash of what they are', () => {
  const workflows = ['ci.yml', 'release.yml'].map(name => read(`.github/workflows/${name}`)).join('\n')
  const actions = workflows.match(/uses: .*/g) ?? []
  expect(actions.length).toBeGreaterThan(0)
  for (const action of actions) expect(action).toMatch(/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  const images = read('Dockerfile').match(/^FROM .*/gm) ?? []
  expect(images.length).toBeGreaterThan(0)
  for (const image of images) expect(image).toMatch(/^FROM node:\d+\.\d+\.\d+-\S+@sha256:[0-9a-f]{64}\b/)
})

test('the container image runs as a user, keeps the database in a volume, and gets signals itself', () => {
  const stages = read('Dockerfile').split(/^FROM /m)
  const last = stages.at(-1) ?? ''
  const instructions = last.replaceAll('\\\n', ' ').split('\n')
  const of = (name: string) => instructions.filter(line => line.startsWith(`${name} `))
  expect(stages.length).toBeGreaterThan(3)
  expect(of('USER')).toEqual(['USER node'])
  expect(of('VOLUME')).toEqual(['VOLUME /data'])
  expect(of('HEALTHCHECK')).toEqual([expect.stringContaining('/api/health')])
  expect(of('STOPSIGNAL')).toEqual(['STOPSIGNAL SIGTERM'])
  // The form with brackets: a shell between would not pass signals on.
  expect(of('ENTRYPOINT')).toEqual(['ENTRYPOINT ["node", "/app/dist/cli/main.js"]'])
  expect(last).toContain('LANGO_STORE=sqlite:/data/')
  const ignored = read('.dockerignore').split('\n')
  expect(ignored).toEqual(expect.arrayContaining(['.git', '.env', '**/node_modules', '**/*.db']))
})

test('the services of compose.yaml wait for the database, and none has a default password', () => {
  const { services, volumes } = parse(read('compose.yaml'))
  const { lango, database } = services
  expect(lango.depends_on).toEqual({ database: { condition: 'service_healthy' } })
  expect(database.healthcheck.test).toEqual(['CMD-SHELL', 'pg_isready -U lango -d lango'])
  expect(database.volumes).toEqual(['database:/var/lib/postgresql'])
  expect(Object.keys(volumes)).toEqual(['database'])
  expect(lango.environment.LANGO_TOKENS).toMatch(/^\$\{LANGO_TOKENS:\?/)
  expect(database.environment.POSTGRES_PASSWORD).toMatch(/^\$\{POSTGRES_PASSWORD:\?/)
  expect(lango.ports).toEqual(['127.0.0.1:18789:18789'])
  expect(lango.init).toBe(true)
})

test.each([
  ['the sources in a clone with its development packages', { tsx: true, built: true }, 'sources'],
  ['the build in a clone that has only the packages of production', { tsx: false, built: true }, 'build'],
  [
    'the sources, which name what is missing, in a clone without both',
    { tsx: false, built: false },
    'sources',
  ],
])('the command runs %s', async (_name, { tsx, built }, expected) => {
  const folder = await temporaryFolder()
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  cpSync(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true })
  write('package.json', '{"type":"module"}')
  write('scripts/start.mjs', "console.log('sources')")
  if (built) write('dist/cli/main.js', "console.log('build')")
  if (tsx) {
    write('node_modules/tsx/package.json', '{"name":"tsx","exports":{"./esm/api":"./api.js"}}')
    write('node_modules/tsx/api.js', '')
  }
  const said = execFileSync(process.execPath, [join(folder, 'bin/lango.mjs')], { encoding: 'utf8' })
  expect(said.trim()).toBe(expected)
})
