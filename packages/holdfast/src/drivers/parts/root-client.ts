import { AsyncLocalStorage } from 'node:async_hooks'
import { noteRootUse } from '../../core/open-transactions.ts'
import { processWide } from '../../core/process-wide.ts'

type Connect = (...args: unknown[]) => unknown

/** The part of a `pg` pool by which it is known. */
interface Pool {
  connect: Connect
  readonly totalCount: number
}

/** `connect` as the pools that we watch have it themselves. */
const connects = /* @__PURE__ */ processWide(
  'pool-connects/1',
  () => new WeakMap<object, Connect>(),
)

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
    const given = connect.apply(pool, args)
    const taking = takings.getStore()
    return taking === undefined || !(given instanceof Promise) ? given : taken(given, taking)
  }
  return pool
}

/**
 * The same for a client with a pool of its own: `owner[method]` takes a connection from it. The owner is what the root
 * client is known by.
 */
export function watchTaking<Owner extends object>(
  owner: Owner,
  method: keyof Owner & string,
): Owner {
  if (connects.has(owner)) return owner
  const take = owner[method] as Connect
  connects.set(owner, take)
  const watched = async (...args: unknown[]): Promise<unknown> => {
    noteRootUse(owner)
    return await take.apply(owner, args)
  }
  Object.assign(owner, { [method]: watched })
  return owner
}

/** The connection that a client has taken for a transaction, once it has it, where its pool is watched. */
export interface Taking {
  client: unknown
}

const takings = /* @__PURE__ */ processWide('takings/1', () => new AsyncLocalStorage<Taking>())

/** Opens a transaction by a client that does not show its connection, and notes which one it takes. */
export function noteTaken<T>(taking: Taking, open: () => T): T {
  return takings.run(taking, open)
}

/** The first one: what the body takes comes later. */
async function taken(given: Promise<unknown>, taking: Taking): Promise<unknown> {
  const client = await given
  taking.client ??= client
  return client
}

/** A connection for ourselves, wherever we are called from. */
export function connectOurs<Client>(pool: { connect(): Promise<Client> }): Promise<Client> {
  return ((connects.get(pool) ?? pool.connect) as () => Promise<Client>).call(pool)
}

function isPool(pool: unknown): pool is Pool {
  const { connect, totalCount } = (pool ?? {}) as Partial<Pool>
  return typeof connect === 'function' && typeof totalCount === 'number'
}
