import { createPool, type Pool } from 'mysql2'
import type { Mysql2Core } from '../../../../src/drivers/innodb/mysql2-orm-leash.ts'
import type { Mysql2CorePool } from '../../../../src/drivers/innodb/mysql2-orm.ts'
import type { Handle } from './innodb-clients.ts'

/** A pool of `mysql2` as ORMs are given one. */
export function corePool(uri: string, connectionLimit: number): Pool {
  return createPool({ uri, connectionLimit })
}

export async function endPool(pool: Pool): Promise<void> {
  await pool.promise().end()
}

type Callback = (error: unknown, ...answer: unknown[]) => void

/** The same pool, whose connections are not what they are. */
export function weakenedPool(pool: Pool, by: (handle: Handle) => Handle): Mysql2CorePool {
  const weak: Mysql2CorePool = {
    getConnection(callback) {
      // In the context of who asks.
      void pool
        .promise()
        .getConnection()
        .then(
          ({ connection }) =>
            process.nextTick(callback, null, weakened(connection as unknown as Mysql2Core, by)),
          (error: unknown) => process.nextTick(callback, error),
        )
    },
    promise: () => ({ pool: weak, getConnection: () => undefined }),
  }
  return weak
}

function weakened(core: Mysql2Core, by: (handle: Handle) => Handle): Mysql2Core {
  const weak = by(core.promise() as unknown as Handle) as unknown as Record<string, Callback>
  const send =
    (method: 'query' | 'execute') =>
    (...args: unknown[]): void => {
      const [text, values] = args
      const answer = args.at(-1) as Callback
      const options = typeof text === 'string' ? { sql: text } : (text as object)
      const given = Array.isArray(values) && values.length > 0 ? { ...options, values } : options
      const sent = weak[method]?.(given) as unknown as Promise<readonly unknown[]>
      sent.then(([rows]) => answer(null, rows), answer)
    }
  return {
    threadId: core.threadId,
    query: send('query'),
    execute: send('execute'),
    promise: () => weak as never,
    release: () => core.release(),
    destroy: () => core.destroy(),
  }
}
