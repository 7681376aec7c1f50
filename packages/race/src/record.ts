/** One flow by itself: what it sends, touches, locks and answers. */
import { aFunction, assertForm, assertOptions, type KnownOptions } from './core/known-options.ts'
import type { FinalTable, FlowOutcome, Note, Step } from './core/model.ts'
import { commonOptions, type ExploreOptions } from './explore.ts'
import { type MomentKind, readHistory, type Transaction } from './report/anomaly/history.ts'
import { createRunner } from './run/create-runner.ts'
import type { Flow } from './run/options.ts'
import { takeTurn } from './run/connection/turn.ts'
import { databaseUrl } from './run/connection/url.ts'
import { inOrder } from './search/policy.ts'

/** What to record. `url`, `seed`, `state`, `oracle` and `outcome` are those of `explore()`. */
export interface RecordOptions
  extends Pick<ExploreOptions, 'url' | 'seed' | 'state' | 'oracle' | 'outcome'> {
  /** The flow, as it is in production; what connects through its context is recorded. */
  readonly flow: Flow
  /** Its name in the context, and in messages; default `flow`. */
  readonly name?: string
}

/** A step with what it is to a reader, and the transaction that it belongs to. */
export interface RecordedStep extends Step {
  /** `read`, `lock`, `write`, … */
  readonly kind: MomentKind
  /** Place in `transactions`; undefined for what was sent outside of one, as `SET` and `cx.step()` are. */
  readonly transaction?: number
}

/** What one flow does by itself. Plain data. */
export interface Recording {
  readonly flow: string
  /**
   * Statements in the order in which they ran, each with its parameters, answer, line of the code (`from`), and with what
   * it read, locked and wrote (`footprint`). A statement without a transaction is one step. Empty if the flow sent
   * nothing through its context.
   */
  readonly steps: readonly RecordedStep[]
  readonly transactions: readonly Transaction[]
  /** What the flow returned or threw. */
  readonly outcome: FlowOutcome
  /** Rows of the user tables afterwards; ids and times of the run are words. */
  readonly tables: readonly FinalTable[]
  readonly notes: readonly Note[]
  readonly server: string
}

/**
 * Runs one flow once, alone, and tells what it did in the database.
 *
 * ```ts
 * const { steps, transactions, outcome } = await record({
 *   url: process.env.DATABASE_URL,
 *   flow: ({ pool }) => reserve(pool, 'alice'),
 * })
 * for (const { kind, statements, from, footprint } of steps) console.log(kind, statements, from, footprint.touches)
 * ```
 *
 * Throws if the flow does not come to its end: it hangs, or waits for a lock of somebody else.
 */
export async function record(options: RecordOptions): Promise<Recording> {
  assertOptions(options, recordOptions)
  assertForm(options.flow, aFunction, 'flow')
  const { flow, name = 'flow', ...rest } = options
  const url = databaseUrl('record()', options.url)
  using _turn = await takeTurn()
  await using runner = await createRunner({
    ...rest,
    url,
    flows: { [name]: flow },
    autocommit: 'atomic',
  })
  const run = await runner.run(inOrder([0]), { only: [0], serial: true, places: true })
  const { trouble, uncontrolled, outcomes, tables, notes } = run
  if (trouble) throw new Error(`record() has no result: ${trouble.message}`)
  const { moments, transactions } = readHistory(run, [name])
  return {
    flow: name,
    steps: moments.map(({ step, kind, transaction }) => ({
      ...step,
      kind,
      ...(transaction && { transaction: transactions.indexOf(transaction) }),
    })),
    transactions,
    outcome: outcomes[0] ?? { kind: 'unfinished' },
    tables,
    notes:
      uncontrolled === undefined
        ? notes
        : [...notes, { kind: 'uncontrolled-wait', message: uncontrolled }],
    server: runner.server,
  }
}

const recordOptions = { ...commonOptions, flow: aFunction } satisfies KnownOptions<RecordOptions>
