import { randomUUID } from 'node:crypto'
import type { Driver, Row } from '../core/driver.ts'
import { type Duration, durationMs } from '../core/duration.ts'
import { enqueueWork } from '../engines/postgres/work.ts'
import type { ResolveOptions } from '../tx/ask-again.ts'
import { schemaMissing } from '../tx/call-function.ts'
import { assertNotNested } from '../tx/run.ts'
import { type Claims, createLeaseClaims } from './claims.ts'
import { type BackoffOptions, type ClaimsOptions, invalid, positive } from './layout.ts'
import { joinedTo, sendAlone } from './sending.ts'

/** A queue in the table `work`. */
export interface WorkOptions extends ResolveOptions {
  readonly queue: string
  /** Where the table is. @defaultValue 'holdfast' */
  readonly schema?: string
  /** How long a claim lasts without a heartbeat. @defaultValue '30 s' */
  readonly lease?: Duration
  readonly backoff?: BackoffOptions
  /** Scopes take turns; with `limit`, at most so many rows of one are in flight. */
  readonly perScope?: { readonly limit?: number }
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
}

/** A row of the queue. */
export interface WorkItem<P> {
  readonly id: string
  readonly scope: string
  readonly priority: number
  readonly payload: P
}

/** A queue: claims over the table `work`, and a way to add to it. */
export interface Work<Tx, P> extends Claims<Tx, WorkItem<P>> {
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

/** How the table `work` is laid out, for one queue of it. */
export function workTable(schema: string, queue: string): ClaimsOptions {
  return {
    table: { schema, table: 'work' },
    key: ['bucket', 'id'],
    bucket: 'bucket',
    where: { queue },
    columns: {
      attempts: 'attempts',
      runAt: 'run_at',
      priority: 'priority',
      error: 'last_error',
      holder: 'claimed_by',
    },
    orderBy: ['run_at', 'id'],
    maxAttempts: { column: 'max_attempts' },
    deleteDone: true,
  }
}

/** Declares a queue in the table `work`, which `holdfast migrate` makes. */
export function createWork<Tx, P = unknown>(driver: Driver<Tx>, options: WorkOptions): Work<Tx, P> {
  const { queue, schema = 'holdfast', perScope, notify = false, ...rest } = options
  if (queue === '') throw invalid('queue', 'is empty')
  const channel = notify ? `holdfast_work:${queue}`.slice(0, channelMost) : undefined
  const claims = createLeaseClaims<Tx, WorkItem<P>>(
    driver,
    {
      ...rest,
      ...workTable(schema, queue),
      ...(perScope === undefined ? {} : { perKey: { column: 'scope', ...perScope } }),
    },
    { texts: ['id', 'scope', 'priority', 'payload'], read: readItem },
  )
  return {
    ...claims,
    run: async (runOptions) =>
      await claims.run(channel === undefined ? runOptions : { listen: channel, ...runOptions }),
    enqueue: (async (...args: readonly [unknown, unknown?]) => {
      const [tx, given] = args.length === 1 ? [undefined, args[0]] : args
      const many = Array.isArray(given)
      const work = (many ? given : [given]) as readonly NewWork<P>[]
      const answers = work.length === 0 ? [] : await add(tx as Tx | undefined, work)
      return many ? answers : answers[0]
    }) as Work<Tx, P>['enqueue'],
  }

  async function add(tx: Tx | undefined, work: readonly NewWork<P>[]): Promise<Enqueued[]> {
    const itemsJson = JSON.stringify(work.map((each) => itemOf(queue, each)))
    const scopes = work.map(({ scope = queue }) => scope)
    const statement = enqueueWork(schema, itemsJson, channel, scopes)
    try {
      if (tx === undefined) assertNotNested(driver)
      const rows =
        tx === undefined
          ? await sendAlone(driver.alone, statement)
          : await (await joinedTo(driver, tx)).query(statement)
      const answers = JSON.parse(String(rows[0]?.['answer'])) as [string | null, boolean][]
      return answers.map(([id, added]) => ({ id: id ?? undefined, added }))
    } catch (error) {
      throw schemaMissing(error) ?? error
    }
  }
}

/** PostgreSQL cuts names after 63 bytes. */
const channelMost = 63

function itemOf<P>(queue: string, work: NewWork<P>): Row {
  const { payload, scope = queue, uniqueKey, priority, runAt, delay, maxAttempts } = work
  if (payload === undefined) throw invalid('payload', 'is needed')
  if (runAt !== undefined && delay !== undefined)
    throw invalid('delay', 'and runAt exclude each other')
  if (runAt !== undefined && Number.isNaN(runAt.getTime())) throw invalid('runAt', 'is no date')
  if (maxAttempts !== undefined) positive(maxAttempts, 'maxAttempts')
  if (priority !== undefined && !Number.isInteger(priority)) {
    throw invalid('priority', 'must be a whole number')
  }
  return {
    id: randomUUID(),
    queue,
    scope,
    payload,
    priority,
    unique_key: uniqueKey,
    delay_ms: delay === undefined ? undefined : durationMs(delay, 'delay'),
    run_at: runAt?.toISOString(),
    max_attempts: maxAttempts,
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
