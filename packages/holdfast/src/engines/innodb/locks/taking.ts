import type { Driver, Row, Statement, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { processWide } from '../../../core/process-wide.ts'
import type { WantedLock } from '../../../core/locks/wanted-lock.ts'
import type {
  Contended,
  FailedWait,
  LockAnswer,
  LockEngine,
  LockRefusal,
  LockTerms,
  Taking,
} from '../../../locks/engine.ts'
import { innodbOf, openAfter } from '../driver.ts'
import { isMissingTable, isOldSnapshot, isReadOnly } from '../errno.ts'
import { forgetServer, knownServer, serverOf, type ServerFacts } from '../server.ts'
import { assertLockTable, isProvenTable } from './lock-table-fit.ts'
import { lockTable } from '../schema/lock-table.ts'
import { endedWaitIn } from '../tx/ended-wait.ts'
import { limitedWrite } from '../tx/limited-write.ts'
import { blockersOf, holdersOfRows } from './holders.ts'
import { areKnown, noteRows } from './known-rows.ts'
import { type NamedLock, namedLock, namedLocks, rowOf } from './lock-name.ts'
import { createLocks, lockRows, type Patience, snapshotOf, writeLocks } from './locks.ts'
import type { Blocker } from '../../../core/events/event-map.ts'

/** How long an attempt may be held up by what NOWAIT and SKIP LOCKED wait for: a table that is being altered. */
const attemptMs = 1_000

/** Which acquisition wrote a row last, by transaction and row: what the transaction holds still has that stamp. */
const stamps = /* @__PURE__ */ processWide(
  'innodb-stamps/1',
  () => new WeakMap<object, Map<string, string>>(),
)

/** Rows of names, written by their holders until the transaction ends. */
class RowTaking<Tx> implements Taking<Tx> {
  readonly #driver: Driver<Tx>
  readonly #database: string | undefined
  readonly #locks: readonly NamedLock[]
  readonly #rows: readonly string[]
  /** Only to be another one than the row's last: it proves nothing to anybody else. */
  readonly #stamp = String(Math.floor(Math.random() * 2 ** 48) + 1)

  constructor(driver: Driver<Tx>, database: string | undefined, wanted: readonly WantedLock[]) {
    if (wanted.some(({ mode }) => mode === 'shared'))
      throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: 'shared locks' } })
    this.#driver = driver
    this.#database = database
    this.#locks = namedLocks(wanted.map(({ key }) => key))
    this.#rows = this.#locks.map(({ row }) => row)
  }

  get #table(): string {
    return lockTable(this.#database ?? knownServer(this.#driver)?.database)
  }

  /** Nothing has opened a snapshot yet, so there is none that could be too old. */
  opening({ attempt, limitMs }: LockTerms): Statement | undefined {
    const facts = knownServer(this.#driver)
    if (attempt || facts === undefined || !isProvenTable(this.#driver, this.#table))
      return undefined
    return facts.dialect === 'mariadb'
      ? writeLocks(this.#table, this.#rows, this.#stamp, limitMs)
      : lockRows(this.#table, this.#rows, 'wait', limitMs)
  }

  async take(
    transaction: Transaction<Tx>,
    terms: LockTerms,
    opened?: Promise<readonly Row[]>,
  ): Promise<LockAnswer> {
    try {
      return await this.#take(transaction, terms, opened)
    } catch (error) {
      // A snapshot that the server keeps apart itself; the transaction is gone with it.
      if (isOldSnapshot(error)) return refused('LOCK_STALE_SNAPSHOT')
      if (isMissingTable(error)) throw holdfastError('SCHEMA_MISSING', { cause: error })
      if (!isReadOnly(error)) throw error
      forgetServer(this.#driver)
      return refused('LOCK_ON_STANDBY')
    }
  }

  async #take(
    transaction: Transaction<Tx>,
    terms: LockTerms,
    opened: Promise<readonly Row[]> | undefined,
  ): Promise<LockAnswer> {
    const began = performance.now()
    const facts = await this.#ready(transaction)
    if (facts.isReadOnly) return refused('LOCK_ON_STANDBY')
    if (transaction.state() === 'none') return refused('LOCK_OUTSIDE_TRANSACTION')
    if (terms.attempt) return await this.#try(transaction, terms, facts)
    const first = await opened
    if (first !== undefined && facts.dialect === 'mariadb') return this.#granted(transaction)
    const left = (): number | undefined => {
      const limitMs = Math.min(terms.limitMs ?? Infinity, terms.budgetMs ?? Infinity)
      return limitMs === Infinity ? undefined : limitMs - (performance.now() - began)
    }
    // At REPEATABLE READ, to lock a row that is missing is to lock the gap it belongs in, and strangers out of it.
    if (first === undefined && !areKnown(this.#driver, this.#rows))
      await this.#create(transaction, this.#rows, left(), facts)
    let rows = first ?? (await this.#lock(transaction, 'wait', left()))
    if (rows.length < this.#rows.length) {
      await this.#create(transaction, this.#rows, left(), facts)
      rows = await this.#lock(transaction, 'wait', left())
    }
    return await this.#hold(transaction, terms, rows)
  }

  /** Asked before anything else, by statements that open no snapshot. */
  async #ready(transaction: Transaction<Tx>): Promise<ServerFacts> {
    const facts = await serverOf(this.#driver, transaction)
    await assertLockTable(this.#driver, transaction, {
      database: this.#database ?? facts.database,
    })
    return facts
  }

  async #lock(
    transaction: Transaction<Tx>,
    patience: Patience,
    limitMs: number | undefined,
  ): Promise<readonly Row[]> {
    return await transaction.query(lockRows(this.#table, this.#rows, patience, limitMs))
  }

  /** The first one who ever takes a name makes its row. Whoever makes it at the same moment is waited for. */
  async #create(
    transaction: Transaction<Tx>,
    rows: readonly string[],
    limitMs: number | undefined,
    { dialect }: ServerFacts,
  ): Promise<void> {
    await limitedWrite(transaction, createLocks(this.#table, rows, limitMs), limitMs, dialect)
  }

  async #try(
    transaction: Transaction<Tx>,
    terms: LockTerms,
    facts: ServerFacts,
  ): Promise<LockAnswer> {
    let rows = await this.#lock(transaction, 'skip', attemptMs)
    while (rows.length < this.#rows.length) {
      const locked = new Set(rows.map((row) => row['name']))
      const missing = this.#rows.filter((row) => !locked.has(row))
      if (!(await this.#mayBeFree(transaction, missing, facts))) break
      rows = await this.#lock(transaction, 'skip', attemptMs)
    }
    return await this.#hold(transaction, terms, rows)
  }

  /** Of rows that were passed over: whether the first is not there yet, or was freed just now. */
  async #mayBeFree(
    transaction: Transaction<Tx>,
    missing: readonly string[],
    facts: ServerFacts,
  ): Promise<boolean> {
    try {
      const [first = ''] = missing
      const found = await transaction.query(lockRows(this.#table, [first], 'nowait', attemptMs))
      if (found.length === 0) await this.#create(transaction, [first], attemptMs, facts)
      return true
    } catch (error) {
      if (endedWaitIn(transaction, error) === undefined) throw error
      return false
    }
  }

  /** The rows are locked: looks whether that is worth something here, and signs them. */
  async #hold(
    transaction: Transaction<Tx>,
    { allowStaleSnapshot }: LockTerms,
    rows: readonly Row[],
  ): Promise<LockAnswer> {
    const locked = this.#locks.filter(({ row }) => rows.some(({ name }) => name === row))
    if (locked.length === 0) return { ...nothing, complete: false }
    if (!allowStaleSnapshot && (await this.#isStale(transaction, rows)))
      return refused('LOCK_STALE_SNAPSHOT')
    noteRows(this.#driver, rows)
    const names = locked.map(({ row }) => row)
    const written = await transaction.query(writeLocks(this.#table, names, this.#stamp))
    // Outside of a transaction each of these statements was one of its own.
    if (transaction.state() !== 'open') {
      const isOpen = openAfter(written) ?? (await innodbOf(transaction).isOpen())
      if (!isOpen) return refused('LOCK_OUTSIDE_TRANSACTION')
    }
    return this.#granted(transaction, locked)
  }

  /** A snapshot that is older than the last holder's COMMIT has an older writing, or no row at all. */
  async #isStale(transaction: Transaction<Tx>, rows: readonly Row[]): Promise<boolean> {
    const [first] = rows
    if (first !== undefined && 'snap' in first) return first['snap'] !== first['writing']
    const names = rows.map(({ name }) => String(name))
    const seen = await transaction.query(snapshotOf(this.#table, names))
    const bySnapshot = new Map(seen.map(({ name, writing }) => [name, writing]))
    return rows.some(({ name, writing }) => bySnapshot.get(name) !== writing)
  }

  #granted(transaction: Transaction<Tx>, locks: readonly NamedLock[] = this.#locks): LockAnswer {
    const { whole } = innodbOf(transaction)
    const noted = stamps.get(whole) ?? new Map<string, string>()
    stamps.set(whole, noted)
    for (const { row } of locks) noted.set(row, this.#stamp)
    const complete = locks.length === this.#locks.length
    const granted = locks.map(({ id }) => ({ mode: 'exclusive', space: 0, id }) as const)
    return { ...nothing, granted, complete, pid: innodbOf(transaction).connectionId }
  }

  async ended(
    error: unknown,
    _terms: LockTerms,
    { transaction }: FailedWait<Tx>,
  ): Promise<Contended | undefined> {
    const by = endedWaitIn(transaction, error)
    if (by === undefined) return undefined
    const endedBy = by === 'ours' ? 'wait' : 'lock_timeout'
    return { blockers: await this.inTheWay(transaction), endedBy }
  }

  async inTheWay(transaction: Transaction<Tx>): Promise<readonly Blocker[]> {
    const executor = transaction.beside ?? this.#driver.alone
    const own = innodbOf(transaction).connectionId
    const blockers = await blockersOf(executor, this.#table, this.#locks)
    return (blockers ?? []).filter(({ pid }) => pid !== own)
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

/** The part of named locks of MariaDB and MySQL; the table is in this database, or in that of the connection. */
export function innodbLocks(database?: string): LockEngine {
  const tableBy = (known: object): string => lockTable(database ?? knownServer(known)?.database)
  return {
    of: 'innodb',
    taking: (driver, wanted) => new RowTaking(driver, database, wanted),
    async isHeld(transaction, key) {
      const { row } = namedLock(key)
      const joined = innodbOf(transaction)
      const stampOf = (): string | undefined => stamps.get(joined.whole)?.get(row)
      // A client that hides what is beneath a handle knows it after the first statement.
      if (stampOf() === undefined) await joined.isOpen()
      const stamp = stampOf()
      if (stamp === undefined) return false
      try {
        // Granted at once to who has it, or if nobody has had it since: then what it protects is as it was.
        const statement = lockRows(tableBy(joined.server), [row], 'nowait', attemptMs)
        const [found] = await transaction.query(statement)
        if (found?.['stamp'] !== stamp) return false
      } catch (error) {
        if (endedWaitIn(transaction, error) === undefined) throw error
        return false
      }
      return transaction.state() === 'open' || (await joined.isOpen())
    },
    holdsAny: (transaction) => innodbOf(transaction).isOpen(),
    async stillHeld(executor, holds) {
      const rows = holds.map(({ token }) => rowOf(token.id))
      const known = rows.filter((row) => row !== undefined)
      const holders = await holdersOfRows(executor, tableBy(executor), known)
      const live = holds.filter(({ pid }, at) =>
        holders.some(({ conn, row }) => conn === pid && row === rows[at]),
      )
      return new Set(live.map(({ pid }) => pid))
    },
    holders: (executor, key) => blockersOf(executor, tableBy(executor), [namedLock(key)]),
    seen({ granted }, memory) {
      const taken = granted.flatMap(({ id, mode }) => {
        const node = memory.get(id)?.namespace
        return node === undefined ? [] : [{ node, mode, id }]
      })
      // What a transaction held before only the server knows, and it does not tell.
      return { held: [], taken, upgraded: [] }
    },
  }
}
