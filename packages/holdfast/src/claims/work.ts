import { randomUUID } from 'node:crypto'
import type { Driver, Row } from '../core/driver.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { momentText } from '../core/options/moment-text.ts'
import { isStorableJson } from '../core/storable.ts'
import { type ResolveOptions, resolveOptions } from '../tx/ask-again.ts'
import { type Claims, createLeaseClaims } from './claims.ts'
import { type DeadJob, deadJobsOver } from './dead-jobs.ts'
import type { DeadRows } from './dead.ts'
import type { ClaimsEngine, Enqueued, WorkRow } from './engine.ts'
import {
  type BackoffOptions,
  backoffOptions,
  invalid,
  mostInteger,
  type PerKeyOptions,
  positive,
  type RateOptions,
  text,
} from './layout.ts'
import { workTable } from './work-table.ts'
import { objectGiven } from '../core/options/given.ts'
import { assertOneOf, type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** A queue in the table `work`. */
export interface WorkOptions extends ResolveOptions {
  readonly queue: string
  /** Where the table is. @defaultValue 'holdfast' */
  readonly schema?: string
  /** How long a claim lasts without a heartbeat. @defaultValue '30 s' */
  readonly lease?: Duration
  readonly backoff?: BackoffOptions
  /**
   * Scopes take turns; with `limit`, at most so many rows of one are in flight, and with `rate`, at most so many
   * are claimed in any span of time.
   */
  readonly perScope?: { readonly limit?: number; readonly rate?: Omit<RateOptions, 'schema'> }
  /**
   * Wake workers by NOTIFY when something was added, those whose client can listen. Costs every
   * commit that adds work a lock that is one for the whole server. @defaultValue false
   */
  readonly notify?: boolean
  /** Written next to what is claimed. @defaultValue host name and process id */
  readonly holder?: string
}

/** Something to do. */
export interface NewWork<P> {
  readonly payload: P
  /** Whose work it is: what turns and limits go by, and what is kept on one server. @defaultValue the queue */
  readonly scope?: string
  /** Only one that is pending or claimed under this key, in queue and scope. */
  readonly uniqueKey?: string
  /**
   * What happens if a job with the same `uniqueKey` is there already. By default this one is dropped. With
   * `'run-after'` the newest payload counts: a job that has not begun takes it, and one that has begun is
   * followed by one more run with it, however many come meanwhile, also if the job fails for good.
   */
  readonly whileRunning?: 'run-after'
  /** Smaller first; use few different ones. @defaultValue 0 */
  readonly priority?: number
  /** Not before; by the database's clock. */
  readonly runAt?: Date
  /** Not before so long from now; by the database's clock. */
  readonly delay?: Duration
  /** @defaultValue 5 */
  readonly maxAttempts?: number
}

const perScopeRate: KnownOptions<Omit<RateOptions, 'schema'>> = {
  most: 'checked',
  per: 'checked',
}

const perScope: KnownOptions<NonNullable<WorkOptions['perScope']>> = {
  limit: 'checked',
  rate: perScopeRate,
}

const workOptions: KnownOptions<WorkOptions> = {
  ...resolveOptions,
  queue: 'checked',
  schema: 'text',
  lease: 'checked',
  backoff: backoffOptions,
  perScope: perScope,
  notify: 'boolean',
  holder: 'text',
}

const newWork: KnownOptions<NewWork<unknown>> = {
  payload: 'checked',
  scope: 'checked',
  uniqueKey: 'checked',
  whileRunning: 'checked',
  priority: 'checked',
  runAt: 'checked',
  delay: 'checked',
  maxAttempts: 'checked',
}

/** A row of the queue. */
export interface WorkItem<P> {
  readonly id: string
  readonly scope: string
  readonly priority: number
  readonly payload: P
}

/** A queue: claims over the table `work`, and a way to add to it. */
export interface Work<Tx, P> extends Omit<Claims<Tx, WorkItem<P>>, 'dead'> {
  /** Jobs of this queue that had their last attempt; `id` is their key. */
  readonly dead: DeadRows<DeadJob<P>>
  /**
   * Adds work; with the caller's transaction, it is there when that commits, and never if it does not.
   *
   * @example
   * await hf.transaction(async (tx) => {
   *   await tx.order.create({ data: order })
   *   await emails.enqueue(tx, { payload: { order: order.id }, uniqueKey: `order:${order.id}` })
   * })
   * @throws OPTION_INVALID, SCHEMA_MISSING, CLAIM_OUTSIDE_TRANSACTION, COMMIT_UNKNOWN
   */
  enqueue(work: NewWork<P>): Promise<Enqueued>
  enqueue(work: readonly NewWork<P>[]): Promise<readonly Enqueued[]>
  enqueue(tx: Tx, work: NewWork<P>): Promise<Enqueued>
  enqueue(tx: Tx, work: readonly NewWork<P>[]): Promise<readonly Enqueued[]>
}

/** A queue in the table `work`, as an engine claims its rows. */
export function workOver<Tx, P>(
  engine: ClaimsEngine,
  driver: Driver<Tx>,
  given: WorkOptions,
): Work<Tx, P> {
  assertDriver(driver, 'createWork', engine.of)
  const options = optionsGiven(given, workOptions)
  const { queue, schema = 'holdfast', perScope, notify = false, ...rest } = options
  text(queue, 'queue')
  const channel = notify ? channelOf(queue) : undefined
  const claims = createLeaseClaims<Tx, WorkItem<P>>(
    engine,
    driver,
    {
      ...rest,
      ...workTable(schema, queue),
      ...(perScope === undefined ? {} : { perKey: perScopeOf(perScope, schema) }),
    },
    { texts: ['id', 'scope', 'priority', 'payload'], isOurs: true, read: readItem },
  )
  return {
    ...claims,
    dead: deadJobsOver<Tx, P>(engine, driver, { queue, schema }),
    async run(runOptions) {
      const given = channel === undefined ? runOptions : { listen: channel, ...runOptions }
      try {
        return await claims.run(given)
      } catch (error) {
        // Of a table of the user's the next step is another one than of ours.
        const isUnfit = isTableUnfit(error)
        throw isUnfit ? holdfastError('SCHEMA_MISSING', { cause: error }) : engine.missing(error)
      }
    },
    enqueue: (async (...args: readonly [unknown, unknown?]) => {
      const [tx, given] = args.length < 2 ? [undefined, args[0]] : args
      // A handle that is missing is no wish to do without a transaction.
      if (args.length > 1 && tx === undefined) driver.join(tx as Tx)
      const many = Array.isArray(given)
      const work = (many ? given : [given]) as readonly NewWork<P>[]
      const rows = work.map((each) => rowOf(queue, each))
      const answers =
        rows.length === 0
          ? []
          : await engine.enqueue(driver, tx as Tx | undefined, schema, rows, channel)
      return many ? answers : answers[0]
    }) as Work<Tx, P>['enqueue'],
  }
}

function isTableUnfit(error: unknown): boolean {
  const unfit = ['table-missing', 'column-missing', 'privilege-missing']
  return (
    isHoldfastError(error, 'CLAIM_TABLE_UNFIT') &&
    error.details.findings.some(({ code }) => unfit.includes(code))
  )
}

function perScopeOf(perScope: NonNullable<WorkOptions['perScope']>, schema: string): PerKeyOptions {
  const { limit, rate } = objectGiven(perScope, 'perScope')
  return {
    column: 'scope',
    ...(limit === undefined ? {} : { limit }),
    ...(rate === undefined ? {} : { rate: { ...objectGiven(rate, 'perScope.rate'), schema } }),
  }
}

/** With queue and scope beside it, it has to fit into an index. */
const mostUniqueBytes = 1_024

/** PostgreSQL takes names of up to 63 bytes. */
function channelOf(queue: string): string {
  const into = Buffer.alloc(63)
  const { written } = new TextEncoder().encodeInto(`holdfast_work:${queue}`, into)
  return into.toString('utf8', 0, written)
}

function rowOf<P>(queue: string, given: NewWork<P>): WorkRow {
  const work = optionsGiven(given, newWork as KnownOptions<typeof given>, 'work')
  assertOneOf(work, 'runAt', 'delay')
  const { scope = queue, uniqueKey, priority, runAt, delay, maxAttempts, whileRunning } = work
  if (whileRunning !== undefined && whileRunning !== 'run-after') {
    throw invalid('whileRunning', "must be 'run-after'")
  }
  if (whileRunning !== undefined && uniqueKey === undefined) {
    throw invalid('whileRunning', 'needs a uniqueKey')
  }
  text(scope, 'scope')
  if (uniqueKey !== undefined) text(uniqueKey, 'uniqueKey', mostUniqueBytes)
  if (runAt !== undefined && delay !== undefined)
    throw invalid('delay', 'and runAt exclude each other')
  if (maxAttempts !== undefined) positive(maxAttempts, 'maxAttempts')
  if (
    priority !== undefined &&
    !(Number.isInteger(priority) && Math.abs(priority) <= mostInteger)
  ) {
    throw invalid('priority', `must be a whole number from -${mostInteger} to ${mostInteger}`)
  }
  return {
    id: randomUUID(),
    queue,
    scope,
    priority,
    uniqueKey,
    delayMs: delay === undefined ? undefined : durationMs(delay, 'delay'),
    runAt: runAt === undefined ? undefined : momentText(runAt, 'runAt'),
    maxAttempts,
    whileRunning,
    payloadJson: payloadJson(work.payload),
  }
}

/** Written by itself: if JSON cannot hold it, that is what has to be said. */
function payloadJson(payload: unknown): string {
  let json: string | undefined
  try {
    json = JSON.stringify(payload)
  } catch (cause) {
    throw invalid('payload', 'must be something that JSON can hold', cause)
  }
  if (json === undefined) throw invalid('payload', 'is needed, and JSON has to be able to hold it')
  if (!isStorableJson(json)) throw invalid('payload', 'contains NUL or half a surrogate pair')
  return json
}

function readItem<P>(row: Row): WorkItem<P> {
  return {
    id: String(row['id']),
    scope: String(row['scope']),
    priority: Number(row['priority']),
    payload: JSON.parse(String(row['payload'])) as P,
  }
}
