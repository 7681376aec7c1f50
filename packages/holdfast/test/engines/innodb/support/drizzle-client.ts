import { sql } from 'drizzle-orm'
import { drizzle, type MySql2Database } from 'drizzle-orm/mysql2'
import type { Row } from '../../../../src/core/driver.ts'
import { fromDrizzleMysql } from '../../../../src/drivers/drizzle-mysql.ts'
import { corePool, endPool, weakenedPool } from './core-pool.ts'
import type { Handle, InnodbClient } from './innodb-clients.ts'
import { type Handles, overHandles } from './over-handles.ts'

type Native = MySql2Database

/** Drizzle wraps whatever a statement fails with. */
const send = async (native: Native, text: string): Promise<readonly Row[]> => {
  try {
    const [rows] = await native.execute(sql.raw(text))
    return rows as unknown as readonly Row[]
  } catch (error) {
    throw (error as Error).cause ?? error
  }
}

const handles: Handles<Native> = {
  of: (native) => ({ query: (text: string) => send(native, text) }) as unknown as Handle,
  native: (handle) => (handle as Partial<Caller>).native as Native,
}

/** A connection with a database of Drizzle over it, on which the user says BEGIN and COMMIT. */
interface Caller extends Handle {
  readonly native: Native
}

export function openDrizzle(uri: string, size: number): InnodbClient {
  const pool = corePool(uri, size)
  const over = (given: typeof pool): ReturnType<InnodbClient['weakened']> =>
    overHandles(fromDrizzleMysql(drizzle(given)) as never, handles)
  return {
    driver: over(pool),
    weakened: (by) => over(weakenedPool(pool, by) as never),
    async connect() {
      const connection = await pool.promise().getConnection()
      const native = drizzle(connection as never) as unknown as Native
      const query = (text: string): Promise<unknown> => send(native, text)
      const caller: Caller = {
        native,
        query,
        beginTransaction: async () => void (await query('begin')),
        commit: async () => void (await query('commit')),
        rollback: async () => void (await query('rollback')),
        release: () => connection.release(),
        destroy: () => connection.destroy(),
      }
      return caller
    },
    rows: async (handle, text) => (await handle.query(text)) as readonly Row[],
    [Symbol.asyncDispose]: async () => await endPool(pool),
  }
}
