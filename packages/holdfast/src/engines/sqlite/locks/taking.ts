import type { Driver, Executor, Statement, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { processWide } from '../../../core/process-wide.ts'
import type { LockKey, WantedLock } from '../../../core/locks/wanted-lock.ts'
import type {
  Contended,
  LockAnswer,
  LockEngine,
  LockRefusal,
  LockTerms,
  Taking,
} from '../../../locks/engine.ts'
import { sqliteDriverOf, sqliteOf } from '../driver.ts'
import { unfit } from '../file-fit.ts'
import { isBusy, isMissingTable, isOldSnapshot, isReadOnly } from '../result-code.ts'
import type { Writer } from '../tx/writer.ts'
import type { Blocker } from '../../../core/events/event-map.ts'

/** What was taken in a transaction, by its handle and by number. It proves nothing: SQLite is asked as well. */
const taken = /* @__PURE__ */ processWide(
  'sqlite-taken/1',
  () => new WeakMap<object, Set<bigint>>(),
)

/** Whose statements on their own these are. */
const writers = /* @__PURE__ */ processWide(
  'sqlite-alone/1',
  () => new WeakMap<Executor, () => Writer>(),
)

/** @throws LOCK_KEY_INVALID for a key whose number only PostgreSQL can work out */
function idOf({ lock }: LockKey): bigint {
  if (lock.kind === 'bigint') return lock.id
  const subject = 'keys of advisory locks are of PostgreSQL; use lockKey'
  throw holdfastError('LOCK_KEY_INVALID', { details: { subject } })
}

/**
 * Locks by name, all of which are the one right to write to the file: whoever has it keeps out everybody else, whatever
 * the names are.
 */
class WriterTaking<Tx> implements Taking<Tx> {
  readonly #writer: () => Writer
  readonly #ids: readonly bigint[]
  readonly #names: readonly string[]

  constructor(driver: Driver<Tx>, wanted: readonly WantedLock[]) {
    if (wanted.some(({ mode }) => mode === 'shared'))
      throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: 'shared locks' } })
    this.#writer = () => sqliteDriverOf(driver).writer()
    writers.set(driver.alone, this.#writer)
    this.#ids = [...new Set(wanted.map(({ key }) => idOf(key)))]
    this.#names = wanted.map(({ key }) => key.name)
  }

  /** The transaction itself begins with the wait. */
  opening(): Statement | undefined {
    return undefined
  }

  async take(transaction: Transaction<Tx>, terms: LockTerms): Promise<LockAnswer> {
    const { attempt, limitMs } = terms
    const ours = sqliteOf(transaction)
    if (transaction.state() === 'none') return refused('LOCK_OUTSIDE_TRANSACTION')
    try {
      await ours.takeWriter({ attempt, limitMs, names: this.#names })
    } catch (error) {
      if (attempt && isBusy(error)) return { ...nothing, complete: false }
      // What it has read is out of date, and what it would write is refused: allowing it would help nobody.
      if (isOldSnapshot(error)) return refused('LOCK_STALE_SNAPSHOT')
      if (isMissingTable(error)) throw holdfastError('SCHEMA_MISSING', { cause: error })
      if (isReadOnly(error)) throw unfit('the connection may only read', error)
      throw error
    }
    const noted = taken.get(transaction.native as object) ?? new Set()
    taken.set(transaction.native as object, noted)
    for (const id of this.#ids) noted.add(id)
    const granted = this.#ids.map((id) => ({ mode: 'exclusive', space: 0, id }) as const)
    return { ...nothing, granted, pid: process.pid }
  }

  async ended(error: unknown): Promise<Contended | undefined> {
    if (!isBusy(error)) return undefined
    return { blockers: this.#writer().holders(), endedBy: 'wait' }
  }

  async inTheWay(): Promise<readonly Blocker[]> {
    return this.#writer().holders()
  }
}

const nothing: LockAnswer = {
  refused: undefined,
  before: [],
  rowsBefore: [],
  granted: [],
  complete: true,
  pid: 0,
}

function refused(code: LockRefusal): LockAnswer {
  return { ...nothing, refused: code, complete: false }
}

/** The part of named locks of SQLite. */
export const sqliteLocks: LockEngine = {
  of: 'sqlite',
  taking: (driver, wanted) => new WriterTaking(driver, wanted),
  async isHeld(transaction, key) {
    const isNoted = taken.get(transaction.native as object)?.has(idOf(key)) === true
    if (!isNoted || transaction.state() === 'none') return false
    if (sqliteOf(transaction).isOurs) return true
    try {
      // Granted at once to who has it. To others only if nothing that they have read has changed since: then what the
      // lock was to protect is as it was, and protected from now on.
      await sqliteOf(transaction).takeWriter({ attempt: true, limitMs: 0, names: [key.name] })
      return true
    } catch (error) {
      if (isBusy(error) || isOldSnapshot(error)) return false
      throw error
    }
  },
  holdsAny: async (transaction) => transaction.state() === 'open',
  // A transaction of the caller's is asked for its state before; nobody else could tell more.
  stillHeld: async (_, holds) => new Set(holds.map(({ pid }) => pid)),
  holders: async (executor, key) => writers.get(executor)?.().holders([key.name]),
  // There is one lock, so there is no order in which it could be taken.
  seen: () => ({ held: [], taken: [], upgraded: [] }),
}
