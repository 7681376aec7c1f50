import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { relative } from 'node:path'

/** One run of tests on a database of which they make copies. */
export interface TestRun {
  readonly tests: readonly string[]
  readonly server: string
  readonly database: string
  /** Full names of tests that fail without a change, and are left out. */
  readonly without: readonly string[]
  /** Ends with the first test that fails. */
  readonly bail: boolean
  readonly limitMs: number
  readonly seed: number
  /** Where the report is written. */
  readonly report: string
  readonly signal: AbortSignal
}

/** A test that failed. */
export interface FailedTest {
  readonly file: string
  /** Empty if its file could not be run at all. */
  readonly name: string
  /** It did not come to an end. */
  readonly timedOut: boolean
}

export interface TestOutcome {
  readonly failed: readonly FailedTest[]
  /** How long each file took. */
  readonly tookMs: ReadonlyMap<string, number>
  readonly timedOut: boolean
}

interface VitestReport {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly startTime: number
    readonly endTime: number
    readonly message: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

const vitest = 'node_modules/vitest/vitest.mjs'
const config = 'scripts/mutants/sql/vitest.config.ts'

/** Runs the tests, and answers what failed. */
export async function runTests(run: TestRun): Promise<TestOutcome> {
  if (run.signal.aborted) return { failed: [], tookMs: new Map(), timedOut: false }
  const args = ['run', '--config', config, '--reporter=json', `--outputFile=${run.report}`]
  const child = spawn(process.execPath, [vitest, ...args, ...(run.bail ? ['--bail=1'] : [])], {
    stdio: 'ignore',
    // Its workers end with it.
    detached: true,
    env: {
      ...process.env,
      MUTANT_TESTS: JSON.stringify(run.tests),
      MUTANT_WITHOUT: JSON.stringify(run.without),
      MUTANT_SERVER: run.server,
      MUTANT_DATABASE: run.database,
      HOLDFAST_BRIEF: '1',
      HOLDFAST_RUNS: '25',
      HOLDFAST_SEED: String(run.seed),
      HOLDFAST_PATIENCE: '4',
    },
  })
  let timedOut = false
  const end = (): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  const timer = setTimeout(() => {
    timedOut = true
    end()
  }, run.limitMs)
  run.signal.addEventListener('abort', end, { once: true })
  await once(child, 'exit')
  clearTimeout(timer)
  run.signal.removeEventListener('abort', end)
  if (timedOut || run.signal.aborted) return { failed: [], tookMs: new Map(), timedOut }
  if (!existsSync(run.report)) throw new Error(`no report of ${run.tests.join(', ')}`)
  return { ...readReport(run.report), timedOut }
}

function readReport(path: string): Pick<TestOutcome, 'failed' | 'tookMs'> {
  const { testResults } = JSON.parse(readFileSync(path, 'utf8')) as VitestReport
  rmSync(path)
  const files = testResults.map((result) => ({
    ...result,
    file: relative(process.cwd(), result.name),
  }))
  return {
    failed: files.flatMap(({ file, status, message, assertionResults }) => {
      const failed = assertionResults
        .filter((test) => test.status === 'failed')
        .map(({ fullName, failureMessages }) => ({
          file,
          name: fullName,
          timedOut: failureMessages.some(saysTimeout),
        }))
      return failed.length === 0 && status === 'failed'
        ? [{ file, name: '', timedOut: saysTimeout(message) }]
        : failed
    }),
    tookMs: new Map(files.map(({ file, startTime, endTime }) => [file, endTime - startTime])),
  }
}

function saysTimeout(message: string): boolean {
  return /(Test|Hook) timed out in/.test(message)
}
