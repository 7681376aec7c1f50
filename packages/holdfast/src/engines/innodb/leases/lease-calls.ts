import { bucketOf } from '../../../core/bucket.ts'
import type { Driver, Executor, Row, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { assertNotNested } from '../../../core/open-transactions.ts'
import type {
  Acquired,
  HeldLeaseName,
  LeaseCalls,
  LeaseCallsWithin,
  LeaseEngine,
  LeaseName,
  LeaseReading,
  LeaseRequest,
  LeaseState,
  LeaseToken,
  ReleaseState,
} from '../../../leases/engine.ts'
import { within } from '../../../core/within.ts'
import { resolveMs } from '../../../tx/ask-again.ts'
import { affectedBy, innodbOf } from '../driver.ts'
import { isDuplicate } from '../errno.ts'
import { dateOf } from '../sql/clock.ts'
import { rowName } from '../sql/row-name.ts'
import { isOpen, ShortCalls } from '../tx/short-call.ts'
import { leaseTables, type LeaseTexts } from './lease-tables.ts'
import {
  countToken,
  endLease,
  extendLease,
  forgetLease,
  giveToken,
  hold,
  idleHolders,
  lastToken,
  lockHolder,
  lockLease,
  lookAtLease,
  newHolder,
  newLease,
  shareHolder,
  shareLease,
} from './leases.ts'

type Calls<Tx> = ShortCalls<Tx, keyof typeof leaseTables>

function idOf({ scope, name }: LeaseName): string {
  return rowName(scope, name)
}

/** Each a short transaction, or a statement, of its own. */
class AloneCalls<Tx> implements LeaseCalls {
  readonly #calls: Calls<Tx>
  readonly #forMs: number

  constructor(calls: Calls<Tx>, forMs: number) {
    this.#calls = calls
    this.#forMs = forMs
  }

  async acquire(_schema: string, request: LeaseRequest): Promise<Acquired> {
    const id = idOf(request)
    // A look without a lock first, so that those who wait do not get in the way of the holder.
    const [seen] = await this.#calls.alone(this.#forMs, (texts) => lookAtLease(texts, id))
    if (seen === undefined) await this.#create(id, request)
    else {
      const freeInMs = othersFor(seen, request.owner)
      if (freeInMs > 0) return { freeInMs }
    }
    return await this.#calls.transaction(this.#forMs, async (transaction, texts) => {
      return await takeOver(transaction, texts, id, request)
    })
  }

  /** In two statements of their own: whoever is stopped in between, or is second, finds what is missing. */
  async #create(id: string, name: LeaseName): Promise<void> {
    for (const make of [newHolder, newLease]) {
      try {
        await this.#calls.alone(this.#forMs, (texts) => make(texts, id, name))
      } catch (error) {
        if (!isDuplicate(error)) throw error
      }
    }
  }

  async renew(_schema: string, held: HeldLeaseName, forMs: number): Promise<LeaseState> {
    const id = idOf(held)
    const most = Math.min(forMs, this.#forMs)
    const extended = await this.#calls.alone(most, (texts) => extendLease(texts, id, held))
    if (affectedBy(extended) > 0) return 'held'
    const [row] = await this.#calls.alone(most, (texts) => lookAtLease(texts, id))
    return whyNot(row, held)
  }

  async release(_schema: string, held: HeldLeaseName): Promise<ReleaseState> {
    const send: Parameters<typeof released>[1] = (statement) =>
      this.#calls.alone(this.#forMs, statement)
    return await released(held, send, async (id) => {
      const [row] = await send((texts) => lookAtLease(texts, id))
      return whyNot(row, held)
    })
  }

  async read(_schema: string, name: LeaseName): Promise<LeaseReading | undefined> {
    const [row] = await this.#calls.alone(this.#forMs, (texts) => lookAtLease(texts, idOf(name)))
    return row && readingOf(row)
  }
}

/** For how many milliseconds it is somebody else's for certain. */
function othersFor({ owner, freeUs }: Row, asking: string): number {
  if (owner === null || owner === asking) return 0
  return Math.max(0, Math.ceil(Number(freeUs) / 1_000))
}

/** Never waits for a row: one that somebody renews, takes or guards is not free. */
async function takeOver(
  transaction: Executor,
  texts: LeaseTexts,
  id: string,
  request: LeaseRequest,
): Promise<Acquired> {
  const [lease] = await transaction.query(lockLease(texts, id))
  if (lease === undefined) return { freeInMs: 0 }
  const [holder] = await transaction.query(lockHolder(texts, id))
  if (holder === undefined) return { freeInMs: 0 }
  const last = String(lease['token'])
  if (holder['owner'] === request.owner && Number(holder['leftUs']) > 0) {
    await transaction.query(hold(texts, id, request, last))
    return { token: BigInt(last) }
  }
  // Of an owner's own, too, the delay after a loss has to be over.
  const freeUs = holder['owner'] === null ? 0 : Number(holder['freeUs'])
  if (freeUs > 0) return { freeInMs: Math.ceil(freeUs / 1_000) }
  const bucket = bucketOf(request.scope)
  await transaction.query(countToken(texts, bucket, last))
  const [counted] = await transaction.query(lastToken(texts, bucket))
  const token = String(counted?.['token'])
  await transaction.query(giveToken(texts, id, token))
  await transaction.query(hold(texts, id, request, token))
  return { token: BigInt(token) }
}

/** Why a row was not changed. */
function whyNot(
  row: Row | undefined,
  { token, owner }: HeldLeaseName,
): Exclude<LeaseState, 'held'> {
  if (row === undefined) return 'unknown'
  if (row['token'] !== String(token)) return 'taken'
  if (row['owner'] === null) return 'released'
  return row['owner'] === owner ? 'expired' : 'taken'
}

/** Changes the holder's row only: it waits for no guard. */
async function released(
  held: HeldLeaseName,
  send: (statement: (texts: LeaseTexts) => ReturnType<typeof endLease>) => Promise<readonly Row[]>,
  look: (id: string) => Promise<Exclude<LeaseState, 'held'>>,
): Promise<ReleaseState> {
  const id = idOf(held)
  if (affectedBy(await send((texts) => endLease(texts, id, held, 'held'))) > 0) return 'released'
  if (affectedBy(await send((texts) => endLease(texts, id, held, 'expired'))) > 0) return 'expired'
  return await look(id)
}

function readingOf(row: Row): LeaseReading {
  const { owner, token, note, acquired, expires, leftUs, freeUs } = row
  const isFree = owner === null || Number(freeUs) <= 0
  return {
    state: isFree ? 'free' : Number(leftUs) <= 0 ? 'delayed' : 'held',
    token: BigInt(String(token)),
    note: typeof note === 'string' ? note : undefined,
    acquiredAt: dateOf(acquired),
    expiresAt: dateOf(expires),
  }
}

/** In a transaction of the caller's. */
class CallsWithin<Tx> implements LeaseCallsWithin {
  readonly #calls: Calls<Tx>
  readonly #transaction: Transaction<Tx>
  readonly #driver: Driver<Tx>

  constructor(calls: Calls<Tx>, driver: Driver<Tx>, tx: Tx) {
    this.#calls = calls
    this.#transaction = driver.join(tx)
    this.#driver = driver
  }

  async guard(_schema: string, asked: LeaseToken): Promise<LeaseState> {
    const transaction = this.#transaction
    return await this.#calls.within(transaction, async (texts) => {
      const [row] = await transaction.query(shareLease(texts, idOf(asked)))
      await this.#assertOpen()
      const state = stateOf(row, asked, this.#driver.name)
      // A lease that was released is never held again under this token.
      if (innodbOf(transaction).readsFresh || (state !== 'held' && state !== 'expired'))
        return state
      return standingIn(await this.#holderNow(texts, idOf(asked)))
    })
  }

  /**
   * The holder's row as it is by now, whatever the transaction's snapshot is: read beside it, so that renewals need not wait
   * for its end. Where no connection can be had for that, locked.
   */
  async #holderNow(texts: LeaseTexts, id: string): Promise<Row | undefined> {
    const { beside = this.#driver.alone } = this.#transaction
    const rows =
      (await within(beside.query(lookAtLease(texts, id)), besideMs)) ??
      (await this.#transaction.query(shareHolder(texts, id)))
    return rows[0]
  }

  async release(_schema: string, held: HeldLeaseName): Promise<ReleaseState> {
    // Asked first: outside of a transaction it would be released at once.
    await this.#assertOpen()
    const transaction = this.#transaction
    return await this.#calls.within(transaction, async (texts) => {
      const send: Parameters<typeof released>[1] = (statement) =>
        transaction.query(statement(texts))
      return await released(held, send, async (id) => {
        const [row] = await send((given) => lookAtLease(given, id))
        const why = whyNot(row, held)
        // What was released or taken stays so; it may also be this transaction that has released it.
        if (innodbOf(transaction).readsFresh || why === 'released' || why === 'taken') return why
        return whyNot(await this.#holderNow(texts, id), held)
      })
    })
  }

  async #assertOpen(): Promise<void> {
    if (!(await isOpen(this.#transaction))) throw holdfastError('LEASE_OUTSIDE_TRANSACTION')
  }
}

/** @throws LOCK_STALE_SNAPSHOT if the transaction reads what was there before the lease was taken over */
function stateOf(row: Row | undefined, { token }: LeaseToken, client: string): LeaseState {
  if (row === undefined) return 'unknown'
  if (row['token'] !== String(token)) return 'taken'
  const [seen, isHeld, isLeft] = String(row['seen']).split(',')
  if (seen !== row['token']) throw holdfastError('LOCK_STALE_SNAPSHOT', { details: { client } })
  if (isHeld !== '1') return 'released'
  return isLeft === '1' ? 'held' : 'expired'
}

/** What a holder's row says of a token that is still the last one. */
function standingIn(row: Row | undefined): LeaseState {
  if (row === undefined) return 'unknown'
  if (row['owner'] === null) return 'released'
  return Number(row['leftUs']) > 0 ? 'held' : 'expired'
}

/** How long a look beside a transaction may take, of which a pool may have no connection left. */
const besideMs = 1_000

/** Rows that are locked at once. */
const batch = 100
/** Of one call, as on PostgreSQL. */
const mostForgotten = 10_000

/** The part of leases of MariaDB and MySQL; the tables are in this database, or in that of the connection. */
export function innodbLeases(database?: string): LeaseEngine {
  const callsOf = <Tx>(driver: Driver<Tx>): Calls<Tx> =>
    new ShortCalls(driver, leaseTables, database)
  return {
    of: 'innodb',
    alone: (driver, options) => new AloneCalls(callsOf(driver), resolveMs(options)),
    onSession() {
      // A lock of a session survives COMMIT, and its pool.
      const subject = 'leadership by session'
      throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject } })
    },
    within: (driver, tx) => new CallsWithin(callsOf(driver), driver, tx),
    async forget(driver, _schema, idleMs, most) {
      assertNotNested(driver)
      const calls = callsOf(driver)
      let forgotten = 0
      for (let left = Math.min(most, mostForgotten); left > 0; ) {
        const some = Math.min(left, batch)
        const [seen, gone] = await calls.transaction(0, async (transaction, texts) => {
          const idle = await transaction.query(idleHolders(texts, idleMs, some))
          let deleted = 0
          for (const { id } of idle) {
            const [free] = await transaction.query(lockLease(texts, String(id)))
            if (free === undefined) continue
            await transaction.query(forgetLease(texts, String(id)))
            deleted += 1
          }
          return [idle.length, deleted]
        })
        forgotten += gone
        left -= gone
        if (seen < some || gone === 0) break
      }
      return forgotten
    },
  }
}
