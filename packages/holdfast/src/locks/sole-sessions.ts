import type { Driver, Executor, Transaction } from '../core/driver.ts'
import { processWide } from '../core/process-wide.ts'
import type { LockAnswer, LockEngine } from './engine.ts'

/** A transaction of a guard, from when its client has opened it until it is over. */
interface Opened {
  /** The backend that it is on, once it has said so. */
  pid: number | undefined
  /** Backends of transactions that ended since it was opened. */
  readonly ended: Set<number>
}

/**
 * A client that gives one session to two transactions makes every lock worthless: the session has the lock already, and
 * the first COMMIT ends both. PostgreSQL only warns about the second BEGIN, which no adapter passes on. But the lock
 * statement tells what the transaction held before, and one that a guard has opened itself holds nothing. And where the
 * first was just ended, the second is on a backend that it cannot have got from a pool, and outside of a transaction.
 */
export class SoleSessions {
  readonly #open = new Set<Opened>()

  opened(): Opened {
    const opened: Opened = { pid: undefined, ended: new Set() }
    this.#open.add(opened)
    return opened
  }

  /** Before the body runs: whether the transaction has its session to itself. */
  async isSole<Tx>(
    engine: LockEngine,
    opened: Opened,
    transaction: Transaction<Tx>,
    { before, rowsBefore, pid, withBegin }: LockAnswer,
  ): Promise<boolean> {
    if (before.length > 0 || rowsBefore.length > 0) return false
    opened.pid = pid
    // Behind a pooler it mostly is on the backend of one that has just ended, and to ask would be another round trip.
    if (withBegin === true || !opened.ended.has(pid)) return true
    // The number may be that of another server's backend, after a failover.
    return await engine.holdsAny(transaction)
  }

  over(opened: Opened): void {
    this.#open.delete(opened)
    if (opened.pid === undefined) return
    for (const other of this.#open) if (other.pid === undefined) other.ended.add(opened.pid)
  }
}

const known = /* @__PURE__ */ processWide(
  'sole-sessions/1',
  () => new WeakMap<object, SoleSessions>(),
)

/** Those of a server: of the driver's, or of the one beside a transaction. */
export function soleSessionsOf<Tx>(driver: Driver<Tx>, beside: Executor | undefined): SoleSessions {
  const server = beside ?? driver
  let sessions = known.get(server)
  if (sessions === undefined) known.set(server, (sessions = new SoleSessions()))
  return sessions
}
