/**
 * Who may import whom: the table of docs/architecture.md as rules. A room may import itself, the four
 * leaves (errors, logger, packages, tool), `base`, and what stands beside its name here. Entries and runtime join the rooms.
 */
import { readFileSync } from 'node:fs'

const LEAVES = '^src/(errors|logger|packages|tool)[.]ts$'
const BASE = '^src/base/'

/** The table of vendors: data alone, so that any room may read it. */
const VENDORS = '^src/provider/vendor(s|-row)[.]ts$'

const ROOMS = {
  base: [],
  session: [],
  store: ['^src/session/'],
  provider: ['^src/session/(pair-calls|turn|usage|tokens)[.]ts$'],
  tools: [],
  testing: ['^src/session/(message|usage)[.]ts$', '^src/provider/(provider|stream-event)[.]ts$'],
  adk: ['^src/session/', '^src/provider/(provider|refused|stream-event)[.]ts$', '^src/provider/repair/'],
  run: ['^src/session/', '^src/adk/sdk[.]ts$', '^src/adk/adk-quirks[.]ts$'],
  engine: ['^src/session/', '^src/run/run-engine[.]ts$'],
  memory: ['^src/session/', '^src/provider/(provider|stream-event)[.]ts$'],
  money: ['^src/session/', '^src/provider/(provider|stream-event)[.]ts$'],
  config: [
    VENDORS,
    '^src/server/security/(client-address|server-token)[.]ts$',
    '^src/tools/(tool-names|mcp-login)[.]ts$',
  ],
  formats: [
    '^src/session/',
    '^src/provider/(provider|sealed-fields|vendors|vendor-row|repair/profile(-for-model)?)[.]ts$',
    '^src/adk/session/event-to-message[.]ts$',
    '^src/store/open-store[.]ts$',
  ],
  observe: [
    VENDORS,
    '^src/session/',
    '^src/run/run-event[.]ts$',
    '^src/provider/(provider|stream-event|call-observer)[.]ts$',
  ],
  transcript: ['^src/session/', '^src/run/(run-event|event-numbers|open-questions)[.]ts$'],
  server: [
    VENDORS,
    '^src/runtime/',
    '^src/observe/',
    '^src/transcript/',
    '^src/formats/',
    '^src/run/(run-event|event-numbers|open-questions)[.]ts$',
    '^src/session/',
  ],
  cli: [
    '^src/(runtime|observe|transcript|formats|memory)/',
    '^src/adk/(messages-to-provider|session/event-to-message|session/messages-to-events)[.]ts$',
    '^src/provider/(provider|model-catalog|provider-registry|sdk-provider|vendors|vendor-row)[.]ts$',
    '^src/tools/(sandbox|tool-names|mcp|mcp-login|mcp-oauth)[.]ts$',
    '^src/run/(run-event|event-numbers|run-signals|open-questions)[.]ts$',
    '^src/session/',
    '^src/config/',
    '^src/store/open-store[.]ts$',
    '^src/provider/repair/',
    '^src/testing/',
    '^src/server/(serve|security/server-token|protocols/mcp-server)[.]ts$',
  ],
  client: ['^src/server/chat-protocol[.]ts$', '^src/run/run-event[.]ts$'],
}

const roomRules = Object.entries(ROOMS).map(([room, allowed]) => ({
  name: `${room}-imports-only-its-own`,
  comment: `src/${room} may import the leaves${allowed.length > 0 ? ` and ${allowed.join(', ')}` : ' and nothing else'}`,
  severity: 'error',
  from: { path: `^src/${room}/` },
  to: { path: '^src/', pathNot: [`^src/${room}/`, LEAVES, BASE, ...allowed] },
}))

/** A package and the only places that may import it. */
const OWNED_PACKAGES = [
  ['@google/adk', ['^src/adk/sdk[.]ts$']],
  ['@google/genai', ['^src/adk/sdk[.]ts$', '^src/provider/gemini/']],
  ['openai', ['^src/provider/openai/']],
  ['@anthropic-ai/sdk', ['^src/provider/anthropic/']],
  ['@anthropic-ai/(bedrock|vertex)-sdk', ['^src/provider/anthropic/']],
  ['@aws-sdk/[^/]*', ['^src/provider/converse/']],
  ['@photostructure/sqlite', ['^src/store/sqlite(-database|-memory)?[.]ts$']],
  ['pg', ['^src/store/postgres(-connection)?[.]ts$', '^src/engine/dbos[.]ts$']],
  [
    '@modelcontextprotocol/sdk',
    ['^src/tools/mcp[^/]*[.]ts$', '^src/server/protocols/mcp-[a-z]+[.]ts$', '^src/cli/mcp[.]ts$'],
  ],
  ['pino', ['^src/observe/log[.]ts$']],
  ['yaml', ['^src/config/import-file[.]ts$']],
  ['hono', ['^src/server/']],
  ['@hono/[^/]*', ['^src/server/']],
  ['eventsource-parser', ['^src/client/', '^src/runtime/direct-provider[.]ts$']],
  ['@dbos-inc/dbos-sdk', ['^src/engine/dbos[^/]*[.]ts$']],
  ['@agentclientprotocol/sdk', ['^src/cli/acp/']],
  ['@earendil-works/pi-tui', ['^src/cli/chat/']],
  ['@clack/prompts', ['^src/cli/']],
  ['@opentelemetry/(sdk|exporter|resources)[^/]*', ['^src/observe/otlp-tracers[.]ts$']],
]

/** What is not installed with Lango: `loadOptional` loads it where it is needed. */
const { peerDependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))
const OPTIONAL_PEERS = `node_modules/(@types/)?(${Object.keys(peerDependencies).join('|')})/`

const packageRules = OWNED_PACKAGES.map(([name, owners]) => ({
  name: `only-its-owner-imports-${name.replaceAll(/[@/]/g, '-').replace(/^-/, '')}`,
  severity: 'error',
  from: { path: '^src/', pathNot: [...owners, '[.]test[.]ts$'] },
  to: { path: `node_modules/(@types/)?${name}/` },
}))

export default {
  forbidden: [
    ...roomRules,
    ...packageRules,
    {
      name: 'leaves-import-only-leaves',
      severity: 'error',
      from: { path: LEAVES },
      to: { pathNot: [LEAVES, BASE] },
    },
    {
      name: 'base-imports-nothing',
      severity: 'error',
      from: { path: BASE, pathNot: '[.]test[.]ts$' },
      // The asynchronous context is shared by all rooms: see ADR 0093.
      to: { pathNot: [BASE, '^(node:)?async_hooks$'] },
    },
    {
      name: 'session-is-pure',
      comment: 'session/ is plain data and rules: no package, no node: module',
      severity: 'error',
      from: { path: '^src/session/', pathNot: '[.]test[.]ts$' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'core', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'providers-never-see-each-other',
      severity: 'error',
      from: { path: '^src/provider/(?!repair/)([^/]+)/' },
      to: { path: '^src/provider/(?!repair/)[^/]+/', pathNot: '^src/provider/$1/' },
    },
    {
      name: 'adk-doors-never-see-each-other',
      severity: 'error',
      from: { path: '^src/adk/(session|model|agent)/' },
      to: { path: '^src/adk/(session|model|agent)/', pathNot: '^src/adk/$1/' },
    },
    {
      name: 'only-history-guard-repairs',
      severity: 'error',
      from: { path: '^src/adk/', pathNot: 'history-guard([.]test)?[.]ts$' },
      to: { path: '^src/provider/repair/' },
    },
    {
      name: 'the-judge-shares-nothing-with-repair',
      comment: 'strict servers judge what providers and repair produce, so they may not share their code',
      severity: 'error',
      from: { path: '^src/testing/', pathNot: ['(scripted-provider([.]test)?|broken-sessions)[.]ts$'] },
      to: { path: '^src/(provider|session)/' },
    },
    {
      name: 'the-client-runs-in-browsers',
      severity: 'error',
      comment: 'the one package is itself made for browsers: pure text in, events out',
      from: { path: '^src/client/', pathNot: '[.]test[.]ts$' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'core', 'npm-no-pkg', 'npm-unknown'],
        pathNot: 'node_modules/eventsource-parser/',
      },
    },
    {
      name: 'the-transcript-runs-in-browsers',
      severity: 'error',
      from: { path: '^src/transcript/', pathNot: '[.]test[.]ts$' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'core', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'the-page-imports-only-client-transcript-and-formats',
      severity: 'error',
      from: { path: '^web/' },
      to: { path: '^src/', pathNot: ['^src/(client|transcript|formats)/', BASE] },
    },
    { name: 'no-import-loops', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-development-packages-in-the-product',
      severity: 'error',
      from: { path: '^src/', pathNot: '[.]test[.]ts$' },
      comment:
        'optional peers are there for the tests; `loadOptional` says how to install them. Types are gone in the product',
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'], pathNot: OPTIONAL_PEERS },
    },
    {
      name: 'nothing-unresolved',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: 'node_modules/(vitest|fast-check|@types/node)' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['types', 'import', 'default'] },
  },
}
