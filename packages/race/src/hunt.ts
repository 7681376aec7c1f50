/**
 * `import { hunt } from '@holdfast/race/hunt'`: runs a suite once, and proves which of its calls get in each other's way.
 *
 * @module
 */
import { type ExploreCallsOptions, exploreCallsBy } from './command/explore-calls.ts'
import { proverProgram } from './command/prover-program.ts'
import type { Report } from './core/model.ts'
import { explore } from './explore.ts'
import { wholeHunt } from './hunt/hunt-calls.ts'
import type { HuntReport } from './hunt/model.ts'
import { type HuntOptions, runHunt } from './hunt/run-hunt.ts'
import { record } from './record.ts'

export { call } from './hunt/record/call.ts'
export { huntBaseline, newRaces } from './hunt/report/baseline.ts'
export type { ExploreCallsOptions } from './command/explore-calls.ts'
export type { CallAgain } from './command/prove-again.ts'
export { formatHunt } from './hunt/report/format-hunt.ts'
export { huntAnnotations, huntSummary } from './hunt/report/github-hunt.ts'
export { type HuntTest, type HuntTestOptions, huntTests } from './hunt/tests/hunt-tests.ts'
export { type JsonHunt, type JsonPair, jsonHunt } from './hunt/report/json-hunt.ts'
export type { Heard } from './hunt/record/heard.ts'
export type { NamedRows, NamedTable } from './run/state/named-rows.ts'
export type {
  Again,
  ArgumentsInput,
  HttpInput,
  HuntedCall,
  HuntedPair,
  HuntProgress,
  HuntReport,
  Input,
  PairVerdict,
} from './hunt/model.ts'
export { htmlHunt } from './hunt/report/page/hunt-page.ts'
export type { Patch } from './report/fix/patch.ts'
export { sarifHunt } from './hunt/report/sarif-hunt.ts'
export type { App, Suite, SuiteContext } from './hunt/record/open-recording.ts'
export type { HuntOptions } from './hunt/run-hunt.ts'
export { instrument, type PgModule } from './run/connection/instrument.ts'

/**
 * Runs the suite once, finds the calls that can meet in the database, and runs them at once in every order that can
 * differ, from rows where only one of them has room. Call `instrument(pg)` before the application opens a connection.
 *
 * ```ts
 * import pg from 'pg'
 * import { hunt, instrument } from '@holdfast/race/hunt'
 *
 * instrument(pg)
 * const { app } = await import('../src/app.ts')
 * const report = await hunt({
 *   url: process.env.DATABASE_URL,
 *   app,
 *   suite: ({ fetch }) => fetch('/coupons/redeem', { method: 'POST', body: '{"code":"SPRING"}' }),
 * })
 * for (const { verdict, sentence } of report.pairs) if (verdict === 'proven') console.log(sentence)
 * ```
 */
export function hunt(options: HuntOptions): Promise<HuntReport> {
  return runHunt(wholeHunt({ explore, record }), options)
}

/**
 * Runs two calls at once, from given rows, in every order that can differ: what the tests call that `huntTests` and
 * `hunt --write-tests` write. The application is loaded in a process of its own, so that every test runner will do.
 *
 * @throws Error if one of the calls is refused by itself from these rows: then the test would show nothing
 */
export function exploreCalls(options: ExploreCallsOptions): Promise<Report> {
  return exploreCallsBy(proverProgram(), options)
}
