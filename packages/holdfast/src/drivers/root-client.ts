import { noteRootUse } from '../core/open-transactions.ts'

type Connect = (...args: unknown[]) => unknown

/** The part of a `pg` pool by which it is known. */
interface Pool {
  connect: Connect
  readonly totalCount: number
}

/** `connect` as the pools that we watch have it themselves. */
const connects = new WeakMap<object, Connect>()

/**
 * Notices when a body takes a connection of the pool instead of using its own handle. By the pool's own
 * `connect`, which `query` goes through as well: its events do not come in the context of who asked.
 */
export function watchRoot(pool: unknown): object | undefined {
  if (!isPool(pool)) return undefined
  if (connects.has(pool)) return pool
  const { connect } = pool
  connects.set(pool, connect)
  pool.connect = (...args) => {
    try {
      noteRootUse(pool)
    } catch (error) {
      const [callback] = args
      if (typeof callback !== 'function') return Promise.reject(error as Error)
      process.nextTick(callback as (error: unknown) => void, error)
      return undefined
    }
    return connect.apply(pool, args)
  }
  return pool
}

/** A connection for ourselves, wherever we are called from. */
export function connectOurs<Client>(pool: { connect(): Promise<Client> }): Promise<Client> {
  return ((connects.get(pool) ?? pool.connect) as () => Promise<Client>).call(pool)
}

function isPool(pool: unknown): pool is Pool {
  const { connect, totalCount } = (pool ?? {}) as Partial<Pool>
  return typeof connect === 'function' && typeof totalCount === 'number'
}
