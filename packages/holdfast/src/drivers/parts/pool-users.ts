import { processWide } from '../../core/process-wide.ts'

/** The part of a `pg` pool by which it tells who uses it. */
interface Pool {
  readonly totalCount: number
  readonly idleCount: number
  on(event: 'acquire' | 'remove', listener: (client: object) => void): unknown
  on(event: 'release', listener: (error: unknown, client: object) => void): unknown
}

/** How many connections of a pool somebody has. */
type Count = () => number

const counts = /* @__PURE__ */ processWide('pool-users/1', () => new WeakMap<object, Count>())

/**
 * Counts the connections of a `pg` pool that somebody has, whoever that is. The pool's own numbers do not tell
 * them from those that are only being opened. Nothing for a pool that has no events.
 */
export function usersOf(pool: unknown): Count | undefined {
  if (!isPool(pool)) return undefined
  const counted = counts.get(pool)
  if (counted !== undefined) return counted
  const clients = new Set<object>()
  // Those taken before we listened.
  let earlier = pool.totalCount - pool.idleCount
  pool.on('acquire', (client) => clients.add(client))
  pool.on('release', (_, client) => {
    if (!clients.delete(client) && earlier > 0) earlier -= 1
  })
  // Older pools do not say `release`.
  pool.on('remove', (client) => clients.delete(client))
  const count = (): number => Math.min(earlier + clients.size, pool.totalCount - pool.idleCount)
  counts.set(pool, count)
  return count
}

function isPool(pool: unknown): pool is Pool {
  const { on, totalCount, idleCount } = (pool ?? {}) as Partial<Pool>
  return typeof on === 'function' && typeof totalCount === 'number' && typeof idleCount === 'number'
}
