import { within } from '../../core/within.ts'
import type { Held } from '../parts/callback-transaction.ts'
import type { Leash } from '../parts/leash.ts'
import { leftoverMs } from '../pg/pg-leash.ts'

/** What a transaction runs its statements on. */
interface KyselyConnection {
  executeQuery(query: { readonly sql: string }, options?: unknown): Promise<unknown>
  streamQuery(query: { readonly sql: string }, ...rest: unknown[]): AsyncIterableIterator<unknown>
}

interface KyselyInside {
  getExecutor?(): {
    provideConnection?<T>(use: (connection: KyselyConnection) => Promise<T>): Promise<T>
  }
}

/**
 * Statements are stopped at the connection, as Kysely's own logging does: whatever plugin or builder they
 * come from, they pass there, COMMIT included. It is ours alone until the transaction is over.
 */
export async function holdKysely<Tx>(native: Tx, leash: Leash): Promise<Held<Tx>> {
  const executor = (native as KyselyInside).getExecutor?.()
  const connection = await executor?.provideConnection?.(async (given) => given)
  if (connection === undefined) return { native }
  const { executeQuery, streamQuery } = connection
  const free = (): void => {
    if (connection.executeQuery === held) Object.assign(connection, { executeQuery, streamQuery })
  }
  const held: KyselyConnection['executeQuery'] = async (query, options) => {
    leash.assertMay(query.sql)
    try {
      return await leash.during(() => executeQuery.call(connection, query, options))
    } finally {
      // Before the connection goes back to the pool, where the next one may hold it at once.
      if (leash.ending) free()
    }
  }
  connection.executeQuery = held
  const open = new Set<AsyncIterableIterator<unknown>>()
  connection.streamQuery = async function* streamed(query, ...rest) {
    leash.assertMay(query.sql)
    leash.sent()
    const rows = streamQuery.call(connection, query, ...rest)
    open.add(rows)
    try {
      for (let next = await rows.next(); next.done !== true; next = await rows.next()) {
        yield next.value
        // What waits behind it in Kysely would be let in, to a connection that is somebody else's by now.
        if (!leash.isHeld) await Promise.withResolvers<never>().promise
      }
    } finally {
      if (leash.isHeld) await rows.return?.()
      open.delete(rows)
      leash.answered()
    }
  }
  return {
    native,
    free,
    // Kysely lets statements in one by one: whatever waits has had its turn, and was refused, before ours.
    settle: async () => {
      if (open.size === 0) await executor?.provideConnection?.(async () => undefined)
    },
    // ROLLBACK, which goes past that queue, would wait for rows that were not all read.
    async rest() {
      if (open.size === 0) return true
      await within(Promise.all([...open].map(async (rows) => await rows.return?.())), leftoverMs)
      return false
    },
  }
}
