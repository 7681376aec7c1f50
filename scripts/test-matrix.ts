/**
 * The conformance suite on every client and version that docs/drivers.md names, each from the registry in a project of
 * its own outside the workspace. A version that is not listed can be asked for, and is told to be none of them.
 * Run: npm run test:matrix [-- drizzle kysely@0.28.18] [--minutes 20] [--json]
 */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { askedRows, type Row } from './matrix/asked-rows.ts'
import { runWithin } from './matrix/run-within.ts'

interface Outcome {
  readonly client: string
  readonly version: string
  readonly isListed: boolean
  /** Why there is nothing to count. */
  readonly trouble?: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly failures: readonly string[]
}

interface VitestReport {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTotalTests: number
  readonly testResults: readonly {
    readonly message: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

const run = promisify(execFile)
const repository = join(import.meta.dirname, '..')
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    /** For one row, once it is installed. */
    minutes: { type: 'string', default: '20' },
  },
})
const minutes = Number(values.minutes)
if (!(minutes > 0)) throw new Error('--minutes is a number above 0')
const rows = askedRows(positionals)

const root = await mkdtemp(join(tmpdir(), 'holdfast-matrix-'))
const outcomes: Outcome[] = []
try {
  await copySources(root)
  for (const row of rows) {
    console.error(`${nameOf(row)}: ${outcomes.length + 1} of ${rows.length}`)
    const outcome = await conform(row)
    outcomes.push(outcome)
    console.error(`  ${counted(outcome)}`)
    for (const failure of outcome.failures) console.error(`  ${failure}`)
  }
} finally {
  await rm(root, { recursive: true })
}
const width = Math.max(...rows.map((row) => nameOf(row).length))
for (const [at, outcome] of outcomes.entries()) {
  if (!values.json) console.log(`${nameOf(rows[at] as Row).padEnd(width)}  ${counted(outcome)}`)
}
if (values.json) console.log(JSON.stringify(outcomes))
process.exitCode = outcomes.every(({ passed, failed }) => passed > 0 && failed === 0) ? 0 : 1

function nameOf({ client, version, isListed }: Row): string {
  return `${client.name} ${version}${isListed ? '' : ' (not listed)'}`
}

function counted({ trouble, passed, failed, skipped }: Outcome): string {
  return trouble ?? `${passed} passed, ${failed} failed, ${skipped} skipped`
}

/** As much of the workspace as the suite needs: our sources and tests, and none of its dependencies. */
async function copySources(folder: string): Promise<void> {
  const holdfast = ['src', 'sql', 'test', 'package.json'].map((part) => `packages/holdfast/${part}`)
  const others = ['cli', 'race', 'console', 'nestjs', 'eslint-plugin'].map(
    (name) => `packages/${name}/package.json`,
  )
  const shared = [
    'docs',
    'testkit',
    'scripts',
    'vitest.config.ts',
    'tsconfig.json',
    'tsconfig.base.json',
  ]
  for (const part of [...holdfast, ...others, ...shared]) {
    await cp(join(repository, part), join(folder, part), {
      recursive: true,
      filter: (path) => !/node_modules|\/generated$/.test(path),
    })
  }
}

async function conform({ client, version, isListed }: Row): Promise<Outcome> {
  const row = { client: client.name, version, isListed }
  const without = (trouble: string): Outcome => ({
    ...row,
    trouble,
    passed: 0,
    failed: 0,
    skipped: 0,
    failures: [],
  })
  const wanted = client.packages(version)
  try {
    await install(wanted)
    for (const [name, expected] of Object.entries(wanted)) await assertInstalled(name, expected)
    if (client.generates === true) await generateClient(version)
  } catch (error) {
    return without(`not installed: ${(error as Error).message}`)
  }
  const report = join(root, 'report.json')
  await rm(report, { force: true })
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const which = ['run', '--project', 'conformance', '--testTimeout=20000']
  const told = ['--reporter=json', `--outputFile=${report}`]
  const files = client.suites.map((suite) => `conformance/${suite}`)
  const { said, ended } = await runWithin(minutes * 60_000, [vitest, ...which, ...told, ...files], {
    cwd: root,
    env: environment(),
  })
  if (!ended) return without(`not ended in ${minutes} min`)
  const written = await readFile(report, 'utf8').catch(() => undefined)
  const outcome = written === undefined ? undefined : (JSON.parse(written) as VitestReport)
  if (outcome === undefined || outcome.testResults.length === 0) {
    return without(`the suite did not run: ${said}`)
  }
  const failures = outcome.testResults.flatMap(({ message, assertionResults }) => [
    ...(assertionResults.length === 0 ? [message] : []),
    ...assertionResults.flatMap(({ fullName, status, failureMessages }) =>
      status === 'failed' ? [`${fullName}: ${firstLine(failureMessages[0])}`] : [],
    ),
  ])
  return {
    ...row,
    passed: outcome.numPassedTests,
    // A file that cannot be loaded has no tests.
    failed: Math.max(outcome.numFailedTests, failures.length),
    skipped: outcome.numPendingTests,
    failures,
  }
}

function firstLine(text = ''): string {
  return text.slice(0, 500).split('\n')[0] as string
}

/** Prisma 6 wants to be told what is the only way in 7: no engine, and the address from elsewhere. */
async function generateClient(version: string): Promise<void> {
  const schema = 'packages/holdfast/test/conformance/prisma/schema.prisma'
  let source = await readFile(join(repository, schema), 'utf8')
  if (version.startsWith('6.')) {
    source = source
      .replace('generator client {', 'generator client {\n  engineType = "client"')
      .replace('datasource db {', 'datasource db {\n  url = env("DATABASE_URL")')
  }
  await writeFile(join(root, schema), source)
  await run('scripts/generate-prisma-clients.sh', { cwd: root, env: environment() })
}

/** A project with one client, and what the tests themselves need. */
async function install(wanted: Readonly<Record<string, string>>): Promise<void> {
  const own = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  const always = [
    'vitest',
    'pg',
    'postgres',
    '@types/pg',
    'fast-check',
    'reflect-metadata',
  ] as const
  const project = {
    private: true,
    type: 'module',
    workspaces: ['testkit', 'packages/holdfast'],
    devDependencies: {
      ...Object.fromEntries(always.map((name) => [name, own.devDependencies[name]])),
      ...wanted,
    },
  }
  await writeFile(join(root, 'package.json'), JSON.stringify(project, undefined, 2))
  await rm(join(root, 'package-lock.json'), { force: true })
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--force']
  await run('npm', ['install', ...options], { cwd: root, env: environment() })
}

/** What the tests will load, and no other copy. */
async function assertInstalled(name: string, version: string): Promise<void> {
  const from = createRequire(join(root, 'packages/holdfast/test/conformance/index.js'))
  const folders = from.resolve.paths(name) ?? []
  for (const folder of folders) {
    const own = await readFile(join(folder, name, 'package.json'), 'utf8').catch(() => undefined)
    if (own === undefined) continue
    const found = (JSON.parse(own) as { version: string }).version
    if (found === version) return
    throw new Error(`${name} is ${found} in ${folder}, not ${version}`)
  }
  throw new Error(`${name} is not installed`)
}

function environment(): NodeJS.ProcessEnv {
  return { ...process.env, HOLDFAST_MATRIX: '1' }
}
