import { randomUUID } from 'node:crypto'
import type { Driver, Row } from '../core/driver.ts'
import { type Duration, durationMs } from '../core/duration.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { momentText } from '../core/moment-text.ts'
import { isStorableJson } from '../core/storable.ts'
import { enqueueWork } from '../engines/postgres/claims/work.ts'
import type { ResolveOptions } from '../tx/ask-again.ts'
import { needingTables, schemaMissing } from '../engines/postgres/sql/call-function.ts'
import { assertNotNested } from '../tx/run.ts'
import { type Claims, createLeaseClaims } from './claims.ts'
import { createDeadJobs, type DeadJob } from './dead-jobs.ts'
import type { DeadRows } from './dead.ts'
import {
  type BackoffOptions,
  invalid,
  mostInteger,
  type PerKeyOptions,
  positive,
  type RateOptions,
  text,
} from './layout.ts'
import { aloneOn, joinedTo } from './sending.ts'
import { workTable } from './work-table.ts'
import { objectGiven } from '../core/given.ts'
import { assertOneOf, type KnownOptions, optionsGiven } from '../core/known-options.ts'
import { newWork, workOptions } from './known-options.ts'
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

/** What became of it. */
export interface Enqueued {
  /** Of the row; of the one that was there already if it was not added. */
  readonly id: string | undefined
  /** False if one with the same unique key was there. */
  readonly added: boolean
  /**
   * Of `whileRunning: 'run-after'`, if it was not added: `after` if it runs once the other has ended,
   * `replaced` if the other had not begun and has the new payload.
   */
  readonly follow?: 'after' | 'replaced'
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

/** Declares a queue in the table `work`, which `holdfast migrate` makes. */
export function createWork<Tx, P = unknown>(driver: Driver<Tx>, given: WorkOptions): Work<Tx, P> {
  assertDriver(driver, 'createWork')
  const options = optionsGiven(given, workOptions)
  const { queue, schema = 'holdfast', perScope, notify = false, ...rest } = options
  text(queue, 'queue')
  const channel = notify ? channelOf(queue) : undefined
  const claims = createLeaseClaims<Tx, WorkItem<P>>(
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
    dead: createDeadJobs<Tx, P>(driver, { queue, schema }),
    async run(runOptions) {
      const given = channel === undefined ? runOptions : { listen: channel, ...runOptions }
      try {
        return await needingTables(claims.run(given))
      } catch (error) {
        // Of a table of the user's the next step is another one than of ours.
        throw isTableUnfit(error) ? holdfastError('SCHEMA_MISSING', { cause: error }) : error
      }
    },
    enqueue: (async (...args: readonly [unknown, unknown?]) => {
      const [tx, given] = args.length < 2 ? [undefined, args[0]] : args
      // A handle that is missing is no wish to do without a transaction.
      if (args.length > 1 && tx === undefined) driver.join(tx as Tx)
      const many = Array.isArray(given)
      const work = (many ? given : [given]) as readonly NewWork<P>[]
      const answers = work.length === 0 ? [] : await add(tx as Tx | undefined, work)
      return many ? answers : answers[0]
    }) as Work<Tx, P>['enqueue'],
  }

  async function add(tx: Tx | undefined, work: readonly NewWork<P>[]): Promise<Enqueued[]> {
    const itemsJson = `[${work.map((each) => itemJson(queue, each)).join(',')}]`
    const scopes = work.map(({ scope = queue }) => scope)
    const statement = enqueueWork(schema, itemsJson, channel, scopes)
    try {
      if (tx === undefined) assertNotNested(driver)
      const rows =
        tx === undefined
          ? await aloneOn(driver).query(statement)
          : await (await joinedTo(driver, tx)).query(statement)
      const answers = JSON.parse(String(rows[0]?.['answer'])) as Answer[]
      return answers.map((answer, at) => enqueued(answer, work[at]?.whileRunning !== undefined))
    } catch (error) {
      // The function is newer than the table: the migration is under way.
      if (sqlStateOf(error) === '42703') throw holdfastError('SCHEMA_MISSING', { cause: error })
      throw schemaMissing(error) ?? error
    }
  }
}

function isTableUnfit(error: unknown): boolean {
  const unfit = ['table-missing', 'column-missing', 'privilege-missing']
  return (
    isHoldfastError(error, 'CLAIM_TABLE_UNFIT') &&
    error.details.findings.some(({ code }) => unfit.includes(code))
  )
}

type Answer = readonly [id: string | null, added: boolean, follow?: 'after' | 'replaced' | null]

/** A function of an older version does not know of `whileRunning`, and nobody would run it. */
function enqueued([id, added, follow]: Answer, asksToFollow: boolean): Enqueued {
  if (asksToFollow && !added && follow === undefined) throw holdfastError('SCHEMA_MISSING')
  return {
    id: id ?? undefined,
    added,
    ...(follow === undefined || follow === null ? {} : { follow }),
  }
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

/** The payload is written by itself: if JSON cannot hold it, that is what has to be said. */
function itemJson<P>(queue: string, given: NewWork<P>): string {
  const work = optionsGiven(given, newWork as KnownOptions<typeof given>, 'work')
  assertOneOf(work, 'runAt', 'delay')
  const item = JSON.stringify(itemOf(queue, work))
  let payload: string | undefined
  try {
    payload = JSON.stringify(work.payload)
  } catch (cause) {
    throw invalid('payload', 'must be something that JSON can hold', cause)
  }
  if (payload === undefined)
    throw invalid('payload', 'is needed, and JSON has to be able to hold it')
  if (!isStorableJson(payload)) throw invalid('payload', 'contains NUL or half a surrogate pair')
  return `{"payload":${payload},${item.slice(1)}`
}

function itemOf<P>(queue: string, work: NewWork<P>): Row {
  const { scope = queue, uniqueKey, priority, runAt, delay, maxAttempts } = work
  const { whileRunning } = work
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
    unique_key: uniqueKey,
    delay_ms: delay === undefined ? undefined : durationMs(delay, 'delay'),
    run_at: runAt === undefined ? undefined : momentText(runAt, 'runAt'),
    max_attempts: maxAttempts,
    while_running: whileRunning,
  }
}

function readItem<P>(row: Row): WorkItem<P> {
  return {
    id: String(row['id']),
    scope: String(row['scope']),
    priority: Number(row['priority']),
    payload: JSON.parse(String(row['payload'])) as P,
  }
}
