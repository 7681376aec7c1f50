import { AsyncLocalStorage } from 'node:async_hooks'
import { noteRootUse } from '../../core/open-transactions.ts'
import { processWide } from '../../core/process-wide.ts'
import { failureAnswered, isFailing } from '../pg/pg-leash.ts'
import { refuseLeftOpen } from '../pg/pg-left-open.ts'

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
    const taking = takings.getStore()
    if (taking === undefined) return connect.apply(pool, args)
    const [callback, ...rest] = args
    if (typeof callback === 'function') {
      return connect.call(pool, calledBack(callback as Callback, taking), ...rest)
    }
    const given = connect.apply(pool, args)
    return given instanceof Promise ? taken(given, taking) : given
  }
  return pool
}

/**
 * The same for a client with a pool of its own: `owner[method]` takes a connection from it. The owner is what the root
 * client is known by. With `giveBack` none is taken on which somebody has left a transaction open.
 */
export function watchTaking<Owner extends object>(
  owner: Owner,
  method: keyof Owner & string,
  giveBack?: (client: never, destroy: boolean) => unknown,
): Owner {
  if (connects.has(owner)) return owner
  const take = owner[method] as Connect
  connects.set(owner, take)
  const watched = async (...args: unknown[]): Promise<unknown> => {
    noteRootUse(owner)
    const client = await take.apply(owner, args)
    const taking = takings.getStore()
    if (taking === undefined || giveBack === undefined) return client
    if (isFailing(client)) await failureAnswered(client as object)
    note(client, taking, (destroy) => giveBack(client as never, destroy))
    return client
  }
  Object.assign(owner, { [method]: watched })
  return owner
}

/** The connection that a client has taken for a transaction, once it has it, where its pool is watched. */
export interface Taking {
  client: unknown
  /** Why the first one was not taken. */
  refusal?: unknown
}

const takings = /* @__PURE__ */ processWide('takings/1', () => new AsyncLocalStorage<Taking>())

/**
 * Opens a transaction by a client that does not show its connection, and notes which one it takes.
 * @throws TX_SESSION_SHARED if somebody has left a transaction open on that
 */
export async function noteTaken<T>(taking: Taking, open: () => PromiseLike<T>): Promise<T> {
  try {
    return await takings.run(taking, open)
  } catch (error) {
    throw taking.refusal ?? error
  }
}

/** The same for a statement on its own. */
export async function aloneOnTaken<T>(run: () => PromiseLike<T>): Promise<T> {
  return await noteTaken({ client: undefined }, run)
}

type Callback = (error: unknown, client: unknown, release: unknown) => unknown

function calledBack(callback: Callback, taking: Taking): Callback {
  return (error, client, release) => {
    if (client === undefined) return callback(error, client, release)
    const given = (): unknown => {
      try {
        noteOfPool(client, taking)
      } catch (refusal) {
        return callback(refusal, undefined, undefined)
      }
      return callback(error, client, release)
    }
    return isFailing(client) ? failureAnswered(client as object).then(given) : given()
  }
}

async function taken(given: Promise<unknown>, taking: Taking): Promise<unknown> {
  const client = await given
  // Given back at the failure, before the server has said what that has made of the transaction.
  if (isFailing(client)) await failureAnswered(client as object)
  noteOfPool(client, taking)
  return client
}

function noteOfPool(client: unknown, taking: Taking): void {
  note(client, taking, (destroy) =>
    (client as { release(destroy: boolean): void }).release(destroy),
  )
}

/** The first one: what the body takes comes later. @throws TX_SESSION_SHARED */
function note(client: unknown, taking: Taking, giveBack: (destroy: boolean) => unknown): void {
  if (taking.client !== undefined) return
  try {
    refuseLeftOpen(client as object, giveBack)
  } catch (refusal) {
    taking.refusal = refusal
    throw refusal
  }
  taking.client = client
}

/** A connection for ourselves, wherever we are called from. */
export function connectOurs<Client>(pool: { connect(): Promise<Client> }): Promise<Client> {
  return ((connects.get(pool) ?? pool.connect) as () => Promise<Client>).call(pool)
}

function isPool(pool: unknown): pool is Pool {
  const { connect, totalCount } = (pool ?? {}) as Partial<Pool>
  return typeof connect === 'function' && typeof totalCount === 'number'
}
