/** `--write-tests`: one file for each race, for the runner that the project has. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { readJson } from '../core/read-json.ts'
import { type HuntTestOptions, huntTests } from '../hunt/tests/hunt-tests.ts'
import type { HuntReport } from '../hunt/model.ts'
import { list } from '../report/words.ts'

interface Manifest {
  readonly type?: string
  readonly dependencies?: object
  readonly devDependencies?: object
}

/** A file that is there stays: whoever has it may have changed it. What is returned tells what was done, for people. */
export function writeTestFiles(
  report: HuntReport,
  {
    folder,
    runner,
    command = [],
    ...rest
  }: Pick<HuntTestOptions, 'app' | 'environment'> & {
    readonly folder: string
    readonly runner: HuntTestOptions['runner']
    /** What was recorded. */
    readonly command?: readonly string[]
  },
): readonly string[] {
  const manifest = manifestAt(folder)
  const tests = huntTests(report, {
    ...rest,
    folder,
    runner: runner ?? runnerIn(command) ?? runnerOf(manifest),
    commonJs: manifest.type !== 'module',
  })
  if (tests.length > 0) mkdirSync(folder, { recursive: true })
  return tests.map(({ file, text, pair, because, disguised = [] }) => {
    if (because !== undefined) return `no test of ${pair}: ${because}`
    const path = join(folder, file)
    if (existsSync(path)) return `${path} is there already, and stays as it is`
    writeFileSync(path, text)
    const hidden =
      disguised.length === 0
        ? ''
        : `; placeholders stand for the values of ${list(disguised)}, which look like secrets`
    return `wrote ${path}${hidden}`
  })
}

/** The nearest package.json. */
function manifestAt(folder: string): Manifest {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const file = join(at, 'package.json')
    if (existsSync(file)) return (readJson(readFileSync(file, 'utf8')) ?? {}) as Manifest
    if (at === dirname(at)) return {}
  }
}

/** What runs the suite runs its new tests too; in a workspace its package.json is another one than that of the folder. */
export function runnerIn(command: readonly string[]): HuntTestOptions['runner'] {
  const words = command.map((word) => basename(word.replaceAll('\\', '/')).split('.')[0])
  const known = (['vitest', 'jest'] as const).find((name) => words.includes(name))
  return known ?? (words.includes('node') && command.includes('--test') ? 'node' : undefined)
}

function runnerOf({ dependencies, devDependencies }: Manifest): 'vitest' | 'jest' | 'node' {
  const all = { ...dependencies, ...devDependencies }
  return (['vitest', 'jest'] as const).find((name) => Object.hasOwn(all, name)) ?? 'node'
}
