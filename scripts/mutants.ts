import { globSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Folder, folders } from './mutants/folders.ts'
import {
  type Accepted,
  type Counts,
  countsOf,
  idleTests,
  isAccepted,
  isSurvivor,
  readMutants,
  survivorText,
  tableOf,
} from './mutants/report.ts'
import { someLines } from './mutants/sample.ts'
import { mutateSql } from './mutants/sql/mutate-sql.ts'
import { runStryker } from './mutants/stryker.ts'

/**
 * How strong are the tests? Changes the code of a folder in many small ways and looks whether its tests notice.
 * What was measured is kept in the cache, also of a run that was stopped or whose minutes were over: the next one
 * measures only what is missing, or whose code or tests have changed.
 *
 *   npm run mutants -- rows tx --minutes 20
 *   npm run mutants -- rows --file row-key.ts
 *   npm run mutants -- core --sample 10
 *
 * `--sample` changes only so many percent of the lines, always the same ones: for folders of which all would take hours.
 *
 *   npm run mutants -- sql apply sweep --sample 20 --seed 2
 *
 * Of SQL files, so many percent of the changes; the seed says which, and in which order.
 */
const source = 'packages/holdfast/src'
const cache = 'node_modules/.cache/mutants'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '600' },
    concurrency: { type: 'string', default: '2' },
    file: { type: 'string' },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    fresh: { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
  },
})
const percent = Number(values.sample)
const names = positionals.length === 0 ? Object.keys(folders) : positionals
const stopping = new AbortController()
setTimeout(() => stopping.abort(), Number(values.minutes) * 60_000).unref()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())

process.exitCode = (positionals[0] === 'sql' ? await sqlMutants() : await codeMutants()) ? 0 : 1

async function sqlMutants(): Promise<boolean> {
  return await mutateSql({
    names: positionals.slice(1),
    percent: Number(values.sample ?? 100),
    seed: Number(values.seed),
    concurrency: Number(values.concurrency),
    quiet: values.quiet,
    fresh: values.fresh,
    signal: stopping.signal,
  })
}

/** False if a folder could not be measured, or is below its required score. */
async function codeMutants(): Promise<boolean> {
  const accepted = JSON.parse(readFileSync('scripts/mutants/accepted.json', 'utf8')) as Accepted[]
  mkdirSync(cache, { recursive: true })
  const rows: [string, Counts][] = []
  let failed = false
  for (const name of names) {
    const folder = folders[name]
    if (folder === undefined)
      throw new Error(`no such folder: ${name}; ${Object.keys(folders).join(', ')}`)
    const files = filesOf(name, folder)
    const sampled = values.sample === undefined ? '' : `-sample-${values.sample}`
    const report = join(cache, `${name.replace('/', '-')}${sampled}.json`)
    console.log(`${name}: ${files.map((file) => basename(file)).join(', ')}`)
    const complete =
      !stopping.signal.aborted &&
      (await runStryker({
        places:
          values.sample === undefined ? files : files.flatMap((file) => someLines(file, percent)),
        tests: folder,
        report,
        fresh: values.fresh,
        concurrency: Number(values.concurrency),
        signal: stopping.signal,
      }))
    for (const file of idleTests(report)) console.log(`${name}: ${file} comes to none of it`)
    const mutants = readMutants(report).filter(({ file }) => files.includes(file))
    const survivors = mutants.filter(
      (mutant) => isSurvivor(mutant) && !isAccepted(mutant, accepted),
    )
    if (!values.quiet) for (const survivor of survivors) console.log(survivorText(survivor))
    const ofFile = (file: string): [string, Counts] => [
      basename(file),
      countsOf(mutants.filter((mutant) => mutant.file === file)),
    ]
    console.log(tableOf(files.map(ofFile)))
    const counts = countsOf(mutants)
    rows.push([name, counts])
    if (!complete) {
      const stopped = stopping.signal.aborted
      failed ||= !stopped
      console.log(
        `${name}: ${stopped ? 'not finished; run it again to go on' : 'could not be measured'}`,
      )
    }
    if (complete && counts.score < (folder.least ?? 0)) {
      console.log(`${name}: ${counts.score.toFixed(1)} % is below ${folder.least} %`)
      failed = true
    }
  }
  console.log(tableOf(rows))
  return !failed
}

function filesOf(name: string, { only = /./ }: Folder): string[] {
  const folder = join(source, name === 'drivers/pg' ? 'drivers' : name)
  return globSync(`${folder}/**/*.ts`)
    .filter((file) => only.test(basename(file)))
    .filter((file) => values.file === undefined || basename(file) === values.file)
    .toSorted()
}
