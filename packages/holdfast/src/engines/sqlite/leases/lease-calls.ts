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
import { resolveMs } from '../../../tx/ask-again.ts'
import { affectedBy } from '../driver.ts'
import { dateOf } from '../sql/clock.ts'
import { ShortCalls } from '../tx/short-call.ts'
import { takeWriterIn, writerTimeout } from '../tx/taking-writer.ts'
import {
  checkLease,
  countToken,
  endLease,
  extendLease,
  forgetLeases,
  hold,
  lookAtLease,
  touchLeases,
} from './leases.ts'

/** Each a short transaction of its own: it waits for whoever writes to the file. */
class AloneCalls<Tx> implements LeaseCalls {
  readonly #calls: ShortCalls<Tx>
  readonly #forMs: number

  constructor(calls: ShortCalls<Tx>, forMs: number) {
    this.#calls = calls
    this.#forMs = forMs
  }

  async acquire(
    _schema: string,
    request: LeaseRequest,
    connectWithinMs: number,
  ): Promise<Acquired> {
    // A look without the right to write first, so that those who wait do not get in the way of the holder.
    const [seen] = await this.#calls.read(lookAtLease(request))
    if (seen !== undefined && seen['owner'] !== null && seen['owner'] !== request.owner) {
      const freeInMs = Math.ceil(Number(seen['freeUs']) / 1_000)
      if (freeInMs > 0) return { freeInMs }
    }
    const take = (transaction: Executor): Promise<Acquired> => takeOver(transaction, request)
    return await this.#calls.write(this.#forMs, take, connectWithinMs)
  }

  async renew(_schema: string, held: HeldLeaseName, forMs: number): Promise<LeaseState> {
    return await this.#calls.write(Math.min(forMs, this.#forMs), async (transaction) => {
      if (affectedBy(await transaction.query(extendLease(held))) > 0) return 'held'
      const [row] = await transaction.query(lookAtLease(held))
      return whyNot(row, held)
    })
  }

  async release(_schema: string, held: HeldLeaseName): Promise<ReleaseState> {
    return await this.#calls.write(this.#forMs, (transaction) => released(transaction, held))
  }

  async read(_schema: string, name: LeaseName): Promise<LeaseReading | undefined> {
    const [row] = await this.#calls.read(lookAtLease(name))
    return row && readingOf(row)
  }
}

/** Nobody else writes meanwhile. */
async function takeOver(transaction: Executor, request: LeaseRequest): Promise<Acquired> {
  const [row] = await transaction.query(lookAtLease(request))
  const last = row === undefined ? '0' : String(row['token'])
  if (row?.['owner'] === request.owner && Number(row['leftUs']) > 0) {
    await transaction.query(hold(request, last))
    return { token: BigInt(last) }
  }
  // Of an owner's own, too, the delay after a loss has to be over.
  const freeUs = row === undefined || row['owner'] === null ? 0 : Number(row['freeUs'])
  if (freeUs > 0) return { freeInMs: Math.ceil(freeUs / 1_000) }
  const [counted] = await transaction.query(countToken(last))
  const token = String(counted?.['token'])
  await transaction.query(hold(request, token))
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

async function released(transaction: Executor, held: HeldLeaseName): Promise<ReleaseState> {
  if (affectedBy(await transaction.query(endLease(held, 'held'))) > 0) return 'released'
  if (affectedBy(await transaction.query(endLease(held, 'expired'))) > 0) return 'expired'
  const [row] = await transaction.query(lookAtLease(held))
  return whyNot(row, held)
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

/** How long a caller's transaction waits for the right to write, unless it has it. */
const withinMs = 10_000

/** In a transaction of the caller's, which gets the right to write and keeps it. */
class CallsWithin<Tx> implements LeaseCallsWithin {
  readonly #driver: Driver<Tx>
  readonly #calls: ShortCalls<Tx>
  readonly #transaction: Transaction<Tx>

  constructor(driver: Driver<Tx>, tx: Tx) {
    this.#driver = driver
    this.#calls = new ShortCalls(driver)
    this.#transaction = driver.join(tx)
  }

  async guard(_schema: string, asked: LeaseToken): Promise<LeaseState> {
    await this.#take(asked)
    return await this.#calls.within(async () => {
      const [row] = await this.#transaction.query(checkLease(asked))
      if (row === undefined) return 'unknown'
      if (!Number(row['fits'])) return 'taken'
      if (!Number(row['isHeld'])) return 'released'
      return Number(row['isLeft']) ? 'held' : 'expired'
    })
  }

  async release(_schema: string, held: HeldLeaseName): Promise<ReleaseState> {
    await this.#take(held)
    return await this.#calls.within(() => released(this.#transaction, held))
  }

  async #take({ name }: LeaseName): Promise<void> {
    const terms = { attempt: false, limitMs: withinMs, names: [name], by: touchLeases }
    await takeWriterIn(this.#driver, this.#transaction, terms, {
      outside: () => holdfastError('LEASE_OUTSIDE_TRANSACTION'),
      ended: (cause, blockers) => writerTimeout(name, cause, blockers),
    })
  }
}

/** Rows that are deleted in one transaction. */
const batch = 500
/** Of one call, as on PostgreSQL. */
const mostForgotten = 10_000

/** The part of leases of SQLite. */
export const sqliteLeases: LeaseEngine = {
  of: 'sqlite',
  alone: (driver, options) => new AloneCalls(new ShortCalls(driver), resolveMs(options)),
  onSession() {
    // A lock of SQLite ends with its transaction, and with it everybody else could write.
    throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: 'leadership by session' } })
  },
  within: (driver, tx) => new CallsWithin(driver, tx),
  async forget(driver, _schema, idleMs, most) {
    assertNotNested(driver)
    const calls = new ShortCalls(driver)
    const all = Math.min(most, mostForgotten)
    let forgotten = 0
    for (let some = batch; forgotten < all && some === batch; forgotten += some) {
      const limit = Math.min(batch, all - forgotten)
      some = await calls.write(0, async (transaction) =>
        affectedBy(await transaction.query(forgetLeases(idleMs, limit))),
      )
    }
    return forgotten
  },
}
