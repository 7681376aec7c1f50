import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { BenchScenario } from '../harness/bench-scenario.ts'
import type { Comparison } from '../harness/compare.ts'
import { quantile, summarise } from '../harness/summary.ts'

const run = promisify(execFile)
const folder = fileURLToPath(new URL('../', import.meta.url))

/** What it took a fresh process to import something, in milliseconds. */
interface Import {
  readonly wall: number
  readonly processor: number
}

/** Measured inside: starting Node costs the same for everybody. */
const program = `
const before = process.cpuUsage()
const began = performance.now()
for (const name of process.argv.slice(1)) await import(name)
const wall = performance.now() - began
const { user, system } = process.cpuUsage(before)
console.log(JSON.stringify({ wall, processor: (user + system) / 1000 }))`

/** Every process compiles what it loads: a cache would leave only the reading. */
const { NODE_COMPILE_CACHE: _, ...environment } = process.env

async function importOf(names: readonly string[]): Promise<Import> {
  const args = ['--input-type=module', '-e', program, ...names]
  const { stdout } = await run(process.execPath, args, { cwd: folder, env: environment })
  return JSON.parse(stdout) as Import
}

const subjects = {
  pg: ['pg'],
  holdfast: ['holdfast'],
  locks: ['holdfast/locks', 'holdfast/drivers/pg'],
  kysely: ['kysely'],
} as const

type Subject = keyof typeof subjects

/** How long it takes to load us, beside the client that everybody loads anyway. */
export const importing: BenchScenario = {
  about: 'what it costs a fresh process to import the library, beside `pg`',
  method:
    'Rounds of one fresh process for each, in another order each time; no compile cache. A ratio is that of one round; shown are the median, the tenth and the ninetieth percentile. `_cpu` is the time of processors that the import took, which a busy machine changes least. The package as it was built last.',
  async run({ quick, progress }) {
    if (!existsSync(new URL('../../packages/holdfast/dist/cjs/index.cjs', import.meta.url))) {
      throw new Error('there is nothing to import; run: npm run build --workspace holdfast')
    }
    const names = Object.keys(subjects) as Subject[]
    const seen = new Map<Subject, Import[]>(names.map((name) => [name, []]))
    for (const name of names) await importOf(subjects[name])
    const rounds = quick ? 10 : 40
    for (let round = 0; round < rounds; round += 1) {
      for (let at = 0; at < names.length; at += 1) {
        const name = names[(at + round) % names.length] as Subject
        seen.get(name)?.push(await importOf(subjects[name]))
      }
      if ((round + 1) % 10 === 0) progress(`import: round ${round + 1} of ${rounds}`)
    }
    const times = (name: Subject, kind: keyof Import): number[] =>
      (seen.get(name) ?? []).map((each) => each[kind])
    const middle = (name: Subject, kind: keyof Import): string =>
      `${quantile(times(name, kind), 0.5).toFixed(1)} ms`
    const versus = (
      ratio: string,
      measured: Subject,
      kind: keyof Import,
      bar?: number,
    ): Comparison => ({
      name: kind === 'wall' ? ratio : `${ratio}_cpu`,
      ratio: summarise(
        times(measured, kind).map((value, at) => value / (times('pg', kind)[at] ?? Number.NaN)),
      ),
      ...(bar === undefined ? {} : { bar, barIs: 'at most' as const }),
      sides: ([measured, 'pg'] as const).map((name) => ({
        value: middle(name, kind),
        label: `import ${subjects[name].join(', ')}`,
      })),
    })
    return {
      comparisons: [
        versus('import_vs_pg', 'holdfast', 'wall', 2),
        versus('import_vs_pg', 'holdfast', 'processor', 2),
        versus('locks_vs_pg', 'locks', 'wall'),
        versus('locks_vs_pg', 'locks', 'processor'),
      ],
      facts: [
        {
          title: 'Median time of an import in a fresh process',
          columns: ['import', 'time', 'of processors'],
          rows: names.map((name) => [
            subjects[name].join(', '),
            middle(name, 'wall'),
            middle(name, 'processor'),
          ]),
        },
      ],
    }
  },
}
