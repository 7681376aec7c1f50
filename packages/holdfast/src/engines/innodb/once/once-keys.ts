import { hash } from 'node:crypto'
import type { Driver, Row, Transaction } from '../../../core/driver.ts'
import { endedInside } from '../../../core/errors/ended-inside.ts'
import { holdfastError } from '../../../core/errors.ts'
import { assertNotNested } from '../../../core/open-transactions.ts'
import type { WaitTerms } from '../../../core/options/wait.ts'
import type { OnceEngine, OnceKeys, OnceNames, OnceState } from '../../../once/engine.ts'
import { affectedBy, openAfter } from '../driver.ts'
import { blockersOfRow } from '../locks/holders.ts'
import { knownServer } from '../server.ts'
import { ownTableText } from '../schema/own-table.ts'
import { rowName } from '../sql/row-name.ts'
import { endedWaitIn } from '../tx/ended-wait.ts'
import { limitedWrite } from '../tx/limited-write.ts'
import { isOpen, ShortCalls } from '../tx/short-call.ts'
import { forgetRow, pastRows, type Patience, readRow, signRow, storeRow, takeRow } from './once.ts'
import { onceTables, type OnceTexts } from './once-table.ts'
import type { Blocker } from '../../../core/events/event-map.ts'
import type { LockId } from '../../../core/locks/wanted-lock.ts'

function rowOf({ scope, key }: OnceNames): string {
  return rowName(scope, key)
}

/** Which call has signed the row of a key: the names are those of one call. */
const stamps = new WeakMap<OnceNames, string>()

interface Taking {
  readonly stamp: string
  readonly patience: Patience
  readonly whose: 'ours' | 'callers'
}

/** Rows that are forgotten in one transaction. */
const batch = 100

/** Each key is a row, locked from before the work until the transaction ends. */
class RowKeys<Tx> implements OnceKeys<Tx> {
  readonly #driver: Driver<Tx>
  readonly #database: string | undefined
  readonly #calls: ShortCalls<Tx, keyof typeof onceTables>

  constructor(driver: Driver<Tx>, database: string | undefined) {
    this.#driver = driver
    this.#database = database
    this.#calls = new ShortCalls(driver, onceTables, database)
  }

  async begin(
    transaction: Transaction<Tx>,
    names: OnceNames,
    wait: WaitTerms,
    whose: 'ours' | 'callers',
  ): Promise<OnceState> {
    const patience: Patience = wait.how === 'wait' ? { limitMs: wait.limitMs } : 'nowait'
    return await this.#calls.within(transaction, async (texts) => {
      const stamp = String(Math.floor(Math.random() * 2 ** 48) + 1)
      let row: Row | undefined
      try {
        row = await this.#take(transaction, texts, names, { stamp, patience, whose })
      } catch (error) {
        const by = endedWaitIn(transaction, error)
        if (by === undefined) throw error
        if (patience === 'nowait') return 'busy'
        const endedBy = by === 'ours' ? 'wait' : 'lock_timeout'
        const blockers = await this.#blockers(transaction.beside, names)
        throw holdfastError('ONCE_TIMEOUT', { cause: error, details: { endedBy }, blockers })
      }
      if (whose === 'callers' && !(await isOpen(transaction)))
        throw holdfastError('ONCE_OUTSIDE_TRANSACTION')
      const known = row && stateOf(row, names)
      if (known !== undefined) return known
      if (row?.['stamp'] !== stamp) await transaction.query(signRow(texts, rowOf(names), stamp))
      stamps.set(names, stamp)
      return 'new'
    })
  }

  /** Locks the row, made if it is not there, and reads it. */
  async #take(
    transaction: Transaction<Tx>,
    texts: OnceTexts,
    names: OnceNames,
    { stamp, patience, whose }: Taking,
  ): Promise<Row | undefined> {
    const row = rowOf(names)
    const isMariadb = knownServer(this.#driver)?.dialect === 'mariadb'
    if (!isMariadb && whose === 'ours') {
      // Only what reads can be limited there to less than a second. A row that is not there is not waited for. In a
      // transaction of the caller's at REPEATABLE READ, the gap it belongs in would be locked, and strangers out of it.
      const [found] = await transaction.query(readRow(texts, row, patience))
      if (found !== undefined) return found
    }
    const take = takeRow(texts, row, names, stamp, patience)
    const limitMs = patience === 'nowait' ? 0 : patience.limitMs
    await limitedWrite(transaction, take, limitMs, isMariadb ? 'mariadb' : 'mysql')
    // It is ours by now.
    const [made] = await transaction.query(readRow(texts, row, { limitMs: undefined }))
    return made
  }

  async store(
    transaction: Transaction<Tx>,
    names: OnceNames,
    json: string | undefined,
    keepMs: number,
  ): Promise<void> {
    await this.#calls.within(transaction, async (texts) => {
      const result = json?.replaceAll(/[\u0080-\uffff]/g, escaped)
      const stamp = stamps.get(names) ?? '0'
      const stored = await transaction.query(
        storeRow(texts, rowOf(names), stamp, names, result, keepMs),
      )
      // The row went with the transaction it was taken in, which the body has outlived.
      const isGone = affectedBy(stored) === 0 || openAfter(stored) === false
      if (isGone) throw endedInside('unknown')
    })
  }

  async forget(most: number): Promise<number> {
    assertNotNested(this.#driver)
    let forgotten = 0
    for (let some = batch; forgotten < most && some === batch; ) {
      const limit = Math.min(batch, most - forgotten)
      some = await this.#calls.transaction(0, async (transaction, texts) => {
        const past = await transaction.query(pastRows(texts, limit))
        for (const { name } of past) await transaction.query(forgetRow(texts, String(name)))
        return past.length
      })
      forgotten += some
    }
    return forgotten
  }

  async holders(names: OnceNames): Promise<readonly Blocker[]> {
    return await this.#blockers(undefined, names)
  }

  async #blockers(
    beside: Transaction<Tx>['beside'],
    names: OnceNames,
  ): Promise<readonly Blocker[]> {
    const database = this.#database ?? knownServer(this.#driver)?.database
    const table = ownTableText(onceTables.once, database)
    const { scope, key } = names
    const name = scope === key ? `holdfast-once:${key}` : `holdfast-once:${scope}:${key}`
    return await blockersOfRow(beside ?? this.#driver.alone, table, rowOf(names), name)
  }

  lock({ scope, key }: OnceNames): LockId {
    const number = hash('sha256', JSON.stringify(['holdfast-once', scope, key])).slice(0, 16)
    return { kind: 'bigint', id: BigInt.asIntN(64, BigInt(`0x${number}`)) }
  }
}

/** Nothing if the work is still to be done. */
function stateOf(row: Row, { fingerprint }: OnceNames): OnceState | undefined {
  const { isDone, fingerprint: kept, result } = row
  if (Number(isDone) !== 1) return undefined
  const isOther = fingerprint !== undefined && kept !== null && kept !== fingerprint
  if (isOther) return 'mismatch'
  return { done: typeof result === 'string' ? result : undefined }
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** The part of `once` of MariaDB and MySQL; the table is in this database, or in that of the connection. */
export function innodbOnce(database?: string): OnceEngine {
  return { of: 'innodb', keys: (driver) => new RowKeys(driver, database) }
}
