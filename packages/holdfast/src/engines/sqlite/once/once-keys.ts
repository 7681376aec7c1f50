import { hash, randomUUID } from 'node:crypto'
import type { Driver, Row, Transaction } from '../../../core/driver.ts'
import { endedInside } from '../../../core/errors/ended-inside.ts'
import { holdfastError } from '../../../core/errors.ts'
import { assertNotNested } from '../../../core/open-transactions.ts'
import type { WaitTerms } from '../../../core/options/wait.ts'
import type { OnceEngine, OnceKeys, OnceNames, OnceState } from '../../../once/engine.ts'
import { affectedBy, sqliteDriverOf, sqliteOf } from '../driver.ts'
import { ShortCalls } from '../tx/short-call.ts'
import { takeWriterIn } from '../tx/taking-writer.ts'
import { forgetKeys, readKey, signKey, storeKey, touchOnce } from './once.ts'
import type { Blocker } from '../../../core/events/event-map.ts'
import type { LockId } from '../../../core/locks/wanted-lock.ts'

/** Which call has signed the row of a key: the names are those of one call. */
const stamps = new WeakMap<OnceNames, string>()

/** Rows that are forgotten in one transaction. */
const batch = 500

/** Answers `begin` from inside of the wait, where nobody waits. */
class SomebodyWrites extends Error {}

/** All keys have one lock, the right to write to the file: from before the work until the transaction ends. */
class FileKeys<Tx> implements OnceKeys<Tx> {
  readonly #driver: Driver<Tx>
  readonly #calls: ShortCalls<Tx>

  constructor(driver: Driver<Tx>) {
    this.#driver = driver
    this.#calls = new ShortCalls(driver)
  }

  async begin(
    transaction: Transaction<Tx>,
    names: OnceNames,
    wait: WaitTerms,
    whose: 'ours' | 'callers',
  ): Promise<OnceState> {
    // What was done needs no lock: the answer does not wait for whoever writes.
    const done = whose === 'ours' ? stateOf(await this.#calls.read(readKey(names)), names) : 'new'
    if (done !== 'new') return done
    const attempt = wait.how !== 'wait'
    const terms = { attempt, limitMs: wait.limitMs, names: [nameOf(names)], by: touchOnce }
    try {
      await takeWriterIn(this.#driver, transaction, terms, {
        outside: () => holdfastError('ONCE_OUTSIDE_TRANSACTION'),
        ended: (cause, blockers) =>
          attempt
            ? new SomebodyWrites()
            : holdfastError('ONCE_TIMEOUT', { cause, details: { endedBy: 'wait' }, blockers }),
      })
    } catch (error) {
      if (error instanceof SomebodyWrites) return 'busy'
      throw error
    }
    return await this.#calls.within(async () => {
      const known = stateOf(await transaction.query(readKey(names)), names)
      if (known !== 'new') return known
      const stamp = randomUUID()
      await transaction.query(signKey(names, stamp))
      stamps.set(names, stamp)
      return 'new'
    })
  }

  async store(
    transaction: Transaction<Tx>,
    names: OnceNames,
    json: string | undefined,
    keepMs: number,
  ): Promise<void> {
    // What would be written now would be saved at once; of ours it is known what became of it, and nothing is sent.
    if (transaction.state() === 'none' && !sqliteOf(transaction).isOurs)
      throw endedInside('unknown')
    const stamp = stamps.get(names) ?? ''
    const stored = await transaction.query(storeKey(names, stamp, json, keepMs))
    // The row went with the transaction it was signed in, which the body has outlived.
    if (affectedBy(stored) === 0) throw endedInside('unknown')
  }

  async forget(most: number): Promise<number> {
    assertNotNested(this.#driver)
    let forgotten = 0
    for (let some = batch; forgotten < most && some === batch; forgotten += some) {
      const limit = Math.min(batch, most - forgotten)
      some = await this.#calls.write(0, async (transaction) =>
        affectedBy(await transaction.query(forgetKeys(limit))),
      )
    }
    return forgotten
  }

  async holders(): Promise<readonly Blocker[]> {
    return sqliteDriverOf(this.#driver).writer().holders()
  }

  lock({ scope, key }: OnceNames): LockId {
    const number = hash('sha256', JSON.stringify(['holdfast-once', scope, key])).slice(0, 16)
    return { kind: 'bigint', id: BigInt.asIntN(64, BigInt(`0x${number}`)) }
  }
}

function nameOf({ scope, key }: OnceNames): string {
  return scope === key ? `holdfast-once:${key}` : `holdfast-once:${scope}:${key}`
}

function stateOf([row]: readonly Row[], { fingerprint }: OnceNames): OnceState {
  if (row === undefined) return 'new'
  const { fingerprint: kept, result } = row
  const isOther = fingerprint !== undefined && kept !== null && kept !== fingerprint
  if (isOther) return 'mismatch'
  return { done: typeof result === 'string' ? result : undefined }
}

/** The part of `once` of SQLite. */
export const sqliteOnce: OnceEngine = {
  of: 'sqlite',
  keys: (driver) => new FileKeys(driver),
}
