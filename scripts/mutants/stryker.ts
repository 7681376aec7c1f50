import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { Folder } from './folders.ts'

/** One run of Stryker. */
export interface StrykerRun {
  /** Files, or lines of them, that are changed. */
  readonly places: readonly string[]
  readonly tests: Pick<Folder, 'unit' | 'database'>
  /** What Stryker knows of earlier runs, and where it writes what it has found: also if it is stopped. */
  readonly report: string
  readonly fresh: boolean
  readonly concurrency: number
  readonly signal: AbortSignal
}

const stryker = 'node_modules/@stryker-mutator/core/bin/stryker.js'
/** How long it may take to write down what it has found so far. */
const graceMs = 10_000

/**
 * Changes the places in every way that Stryker knows, and runs the tests that reach each change. What was tested
 * before is not tested again, unless its code or its tests have changed. False if it did not come to the end.
 */
export async function runStryker(run: StrykerRun): Promise<boolean> {
  const { report, tests, signal } = run
  const config = report.replace('.json', '.config.json')
  writeFileSync(config, JSON.stringify(configOf(run)))
  const child = spawn(process.execPath, [stryker, 'run', config], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, MUTANTS_TESTS: JSON.stringify(tests), HOLDFAST_PATIENCE: '4' },
    // Its workers and their servers end with it.
    detached: true,
  })
  const { pid } = child
  const stop = (): void => {
    if (pid === undefined) return
    process.kill(pid, 'SIGTERM')
    setTimeout(() => process.kill(-pid, 'SIGKILL'), graceMs).unref()
  }
  signal.addEventListener('abort', stop, { once: true })
  const [code] = (await once(child, 'exit')) as [number | null]
  signal.removeEventListener('abort', stop)
  return code === 0
}

function configOf({ places, report, fresh, concurrency }: StrykerRun): object {
  return {
    mutate: places,
    plugins: ['@stryker-mutator/vitest-runner'],
    testRunner: 'vitest',
    vitest: { configFile: 'scripts/mutants/vitest.config.ts', related: false },
    coverageAnalysis: 'perTest',
    // What runs once when a file is loaded would need all tests each time.
    ignoreStatic: true,
    concurrency,
    incremental: true,
    incrementalFile: report,
    force: fresh,
    reporters: ['progress-append-only'],
    // Tests wait for servers and for each other's locks: only what takes far longer has hung.
    timeoutMS: 15_000,
    timeoutFactor: 3,
    dryRunTimeoutMinutes: 30,
    disableTypeChecks: false,
    // What the tests of these folders read.
    ignorePatterns: [
      '**',
      '!package.json',
      '!docs/*.md',
      '!packages/holdfast/**',
      '!scripts/mutants/**',
      'dist',
    ],
    tempDirName: 'node_modules/.cache/mutants/sandbox',
    cleanTempDir: 'always',
    allowConsoleColors: false,
    logLevel: 'warn',
  }
}
