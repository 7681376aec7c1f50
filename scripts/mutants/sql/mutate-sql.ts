import { globSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { changed, type SqlMutant } from './change.ts'
import { testsOf } from './covering-tests.ts'
import { type Known, knownAs } from './known.ts'
import { mutantsOf, sampled } from './mutants-of.ts'
import { type MutantServer, startMutantServer } from './mutant-server.ts'
import { fileTable, resultText, testTable } from './report.ts'
import { type Result, Results } from './results.ts'
import { type FailedTest, runTests, type TestOutcome } from './run-tests.ts'

const folder = 'packages/holdfast/sql'
const cache = 'node_modules/.cache/mutants'

export interface SqlRun {
  /** Functions, or parts of the names of files; all if there are none. */
  readonly names: readonly string[]
  readonly percent: number
  readonly seed: number
  readonly concurrency: number
  readonly quiet: boolean
  readonly fresh: boolean
  readonly signal: AbortSignal
}

/**
 * Changes the SQL files in many small ways, one at a time, installs each into databases of its own and looks whether
 * the tests notice. The files themselves are never touched. False if an entry of `known.json` fits nothing any more.
 */
export async function mutateSql(run: SqlRun): Promise<boolean> {
  mkdirSync(cache, { recursive: true })
  const texts = new Map(
    globSync('**/*.sql', { cwd: folder })
      .toSorted()
      .map((file) => [file, readFileSync(join(folder, file), 'utf8')]),
  )
  const all = [...texts].flatMap(([file, text]) => mutantsOf(file, text))
  const known = JSON.parse(readFileSync('scripts/mutants/sql/known.json', 'utf8')) as Known[]
  const entryOf = (mutant: SqlMutant): Known | undefined =>
    knownAs(mutant, texts.get(mutant.file) ?? '', known)
  const used = new Set(all.map(entryOf))
  const stale = known.filter((entry) => !used.has(entry))
  for (const { file, original, replacement } of stale) {
    console.log(`known.json: nothing is like ${file}: ${original} → ${replacement} any more`)
  }
  const chosen = all.filter(({ file }) => run.names.length === 0 || run.names.some(isNamed(file)))
  const mutants = sampled(chosen, run.percent, run.seed)
  console.log(`${mutants.length} of ${chosen.length} changes`)
  const round = new Round(run, texts, new Results(join(cache, 'sql.json'), run.fresh))
  const results = mutants.flatMap((mutant): Result[] => {
    const entry = entryOf(mutant)
    return entry === undefined ? [] : [{ mutant, status: 'known', by: entry.reason }]
  })
  results.push(...(await round.play(mutants.filter((mutant) => entryOf(mutant) === undefined))))
  console.log(`\n${fileTable(results)}\n\n${testTable(results)}\n`)
  for (const result of results.filter(({ status }) => status === 'survived')) {
    console.log(resultText(result))
  }
  if (results.length < mutants.length) {
    console.log(`${results.length} of ${mutants.length} looked at; run it again to go on`)
  }
  return stale.length === 0
}

function isNamed(file: string): (name: string) => boolean {
  const path = file.replace(/\.sql$/, '')
  return (name) => basename(path) === name || path === name || path.startsWith(`${name}/`)
}

/** The tests without a change. */
interface Baseline {
  /** Prove nothing, and are left out. */
  readonly failing: readonly string[]
  readonly tookMs: ReadonlyMap<string, number>
}

/** For tests that hang: the time they take without a change so many times, and so much more. */
const patience = { times: 3, moreMs: 30_000 }
const baselineMs = 900_000

/** Several mutants at a time, each on a server of its own. */
class Round {
  readonly #run: SqlRun
  readonly #texts: ReadonlyMap<string, string>
  readonly #results: Results
  readonly #done: Result[] = []

  constructor(run: SqlRun, texts: ReadonlyMap<string, string>, results: Results) {
    this.#run = run
    this.#texts = texts
    this.#results = results
  }

  async play(mutants: readonly SqlMutant[]): Promise<Result[]> {
    const left: SqlMutant[] = []
    for (const mutant of mutants) {
      const kept = this.#results.get(mutant, this.#textOf(mutant), testsOf(mutant.file))
      if (kept === undefined) left.push(mutant)
      else this.#done.push(kept)
    }
    if (left.length === 0) return this.#done
    console.log(`${this.#done.length} measured before; first the tests without a change`)
    const baseline = await this.#measure(left)
    const until = this.#done.length + left.length
    const work = async (): Promise<void> => {
      for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
        const began = Date.now()
        const result = await this.#try(mutant, baseline)
        if (this.#run.signal.aborted) return
        this.#done.push(result)
        const took = ((Date.now() - began) / 1000).toFixed(0)
        if (this.#run.quiet) continue
        console.log(`${this.#done.length}/${until} ${took} s ${resultText(result)}`)
      }
    }
    await Promise.all(Array.from({ length: this.#run.concurrency }, work))
    return this.#done
  }

  #textOf(mutant: SqlMutant): string {
    return changed(this.#texts.get(mutant.file) ?? '', mutant)
  }

  async #try(mutant: SqlMutant, baseline: Baseline): Promise<Result> {
    await using server = await startMutantServer()
    const tests = testsOf(mutant.file)
    const text = this.#textOf(mutant)
    const installed = await server.install(mutant.file, text)
    const result: Result =
      'problem' in installed
        ? { mutant, status: 'invalid', by: installed.problem }
        : resultOf(mutant, await this.#tests(server, installed.database, tests, baseline))
    if (!this.#run.signal.aborted) this.#results.add(result, text, tests)
    return result
  }

  /** What fails without a change proves nothing, and how long the tests take says when they hang. */
  async #measure(mutants: readonly SqlMutant[]): Promise<Baseline> {
    await using server = await startMutantServer()
    const installed = await server.install('', '')
    if ('problem' in installed) throw new Error(installed.problem)
    const tests = [...new Set(mutants.flatMap(({ file }) => testsOf(file)))]
    const { failed, tookMs } = await this.#tests(server, installed.database, tests)
    for (const failure of failed) {
      console.log(`fails without a change, and is left out: ${nameOf(failure)}`)
    }
    return { failing: failed.map(({ name }) => name), tookMs }
  }

  async #tests(
    server: MutantServer,
    database: string,
    tests: readonly string[],
    baseline?: Baseline,
  ): Promise<TestOutcome> {
    const { seed, signal } = this.#run
    const usualMs = tests.reduce((sum, test) => sum + (baseline?.tookMs.get(test) ?? 0), 0)
    return await runTests({
      tests,
      server: server.url,
      database,
      without: baseline?.failing ?? [],
      bail: baseline !== undefined,
      limitMs: baseline === undefined ? baselineMs : patience.times * usualMs + patience.moreMs,
      seed,
      report: join(cache, `sql-${database}.json`),
      signal,
    })
  }
}

function resultOf(mutant: SqlMutant, { failed: [first], timedOut }: TestOutcome): Result {
  if (timedOut) return { mutant, status: 'timed out', by: '' }
  if (first === undefined) return { mutant, status: 'survived', by: '' }
  return { mutant, status: first.timedOut ? 'timed out' : 'caught', by: nameOf(first) }
}

function nameOf({ file, name }: FailedTest): string {
  return `${file} > ${name === '' ? 'cannot be run' : name}`
}
