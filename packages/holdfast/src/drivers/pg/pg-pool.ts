import { openingFailure } from '../../core/errors/commit-failure.ts'
import { holdfastError } from '../../core/errors.ts'
import type { PoolUse } from '../../core/errors/pool-use.ts'
import { isPoolStarved } from '../../core/sql-state.ts'
import { usersOf } from '../parts/pool-users.ts'
import { connectOurs } from '../parts/root-client.ts'
import { failureAnswered, isFailing } from './pg-leash.ts'
import { refuseLeftOpen } from './pg-left-open.ts'

/** The part of a `pg` result we read. */
interface PgResult {
  readonly rows: unknown[]
  readonly command: string
}

/** The part of a `pg` client we use: what `pool.connect()` gives. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<PgResult>
  release(destroy?: boolean | Error): void
  on(event: 'error', listener: (error: Error) => void): unknown
  off(event: 'error', listener: (error: Error) => void): unknown
}

/** The part of a `pg` pool we use. */
export interface PgPool {
  connect(): Promise<PgClient>
}

/** What a connection was taken for. */
export type Use = 'transaction' | 'statement' | 'session'

/** What pools tell about themselves, where they do. */
interface Counts {
  readonly totalCount?: number
  readonly idleCount?: number
  readonly waitingCount?: number
  readonly options?: { readonly max?: number }
}

interface Ending {
  once(event: 'end', listener: () => void): unknown
}

/**
 * Takes connections from a pool, and names it when there is none to be had: `pg` itself waits for ever,
 * also if those who have the connections wait for one more.
 */
export class PgConnects {
  readonly #pool: PgPool
  readonly #limitMs: number
  readonly #taken = new Map<PgClient, { readonly use: Use; readonly since: number }>()
  readonly #users: (() => number) | undefined

  constructor(pool: PgPool, limitMs: number) {
    this.#pool = pool
    this.#limitMs = limitMs
    this.#users = usersOf(pool)
  }

  /** @throws POOL_STARVED, CONNECTION_UNAVAILABLE, TX_SESSION_SHARED */
  async take(use: Use, withinMs?: number): Promise<PgClient> {
    const client = await this.#rested(Math.min(this.#limitMs, withinMs ?? Infinity))
    refuseLeftOpen(client, (destroy) => client.release(destroy))
    this.#taken.set(client, { use, since: performance.now() })
    // A session is closed and not given back.
    if (use === 'session')
      (client as Partial<Ending>).once?.('end', () => this.#taken.delete(client))
    return client
  }

  giveBack(client: PgClient, destroy: boolean): void {
    this.#taken.delete(client)
    client.release(destroy)
  }

  /** One may be given back at a failure, before the server has said what that has made of the transaction. */
  async #rested(limitMs: number): Promise<PgClient> {
    const client = await this.#connect(limitMs)
    if (!isFailing(client)) return client
    await failureAnswered(client)
    if (!isFailing(client)) return client
    // That was the end of it.
    client.release(true)
    return await this.#connect(limitMs)
  }

  async #connect(limitMs: number): Promise<PgClient> {
    const connecting = connectOurs(this.#pool)
    try {
      const { idleCount = 1, waitingCount = 0 } = this.#pool as Counts
      // Where there is one for everybody who asks it comes at once, and no timer is needed.
      if (idleCount >= Math.max(1, waitingCount)) return await connecting
      return await this.#inTime(connecting, limitMs)
    } catch (error) {
      const { totalCount } = this.#pool as Counts
      // The pool's own limit. A pool that does not say who has its connections is taken by its word.
      const isLate = isPoolStarved(error) && totalCount !== undefined
      throw isLate ? this.#noneFree(error) : openingFailure(error)
    }
  }

  async #inTime(connecting: Promise<PgClient>, limitMs: number): Promise<PgClient> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(this.#noneFree())
        // Nobody waits for it any longer.
        connecting.then((client) => client.release(), ignored)
      }, limitMs)
    })
    try {
      return await Promise.race([connecting, late])
    } finally {
      clearTimeout(timer)
    }
  }

  #noneFree(cause?: unknown): Error {
    return this.#isFull()
      ? this.#starved(cause)
      : holdfastError('CONNECTION_UNAVAILABLE', { cause })
  }

  /** All are taken, and not only by those who wait for the server to answer. */
  #isFull(): boolean {
    const { totalCount = 0, idleCount = 0, options } = this.#pool as Counts
    return idleCount === 0 && totalCount >= (options?.max ?? 10) && this.#inUse() > 0
  }

  #inUse(): number {
    const { totalCount = 0 } = this.#pool as Counts
    return this.#users?.() ?? totalCount
  }

  #starved(cause?: unknown): Error {
    const held = this.#use()
    const { size, transactions, others } = held
    const subject = `${size} connections, ${transactions} in transactions of Holdfast, ${others} taken by others`
    return holdfastError('POOL_STARVED', { details: { subject, held }, cause })
  }

  #use(): PoolUse {
    const { totalCount = 0, waitingCount = 0 } = this.#pool as Counts
    const taken = [...this.#taken.values()]
    const count = (use: Use): number => taken.filter((each) => each.use === use).length
    const oldest = Math.min(...taken.map(({ since }) => since))
    return {
      size: totalCount,
      transactions: count('transaction'),
      statements: count('statement'),
      sessions: count('session'),
      others: Math.max(0, this.#inUse() - taken.length),
      waiting: waitingCount,
      oldestMs: taken.length === 0 ? 0 : performance.now() - oldest,
    }
  }
}

function ignored(): void {}
