import type { Executor } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'
import { asOurs } from '../../core/open-transactions.ts'
import type { InnodbDriver, InnodbTransaction } from '../../engines/innodb/driver.ts'
import { innodb } from '../../engines/innodb/engine.ts'
import {
  aloneOn,
  type InnodbConnection,
  runOnConnection,
  type TakenConnection,
} from './innodb-connection.ts'
import { noteLeashed, transactionOn } from './innodb-handle.ts'
import { mysql2Connection } from './mysql2-connection.ts'
import { leashedCore, type Mysql2Core, OrmLeash } from './mysql2-orm-leash.ts'

/** The part of a pool of `mysql2`, with callbacks, that we use. */
export interface Mysql2CorePool {
  getConnection(callback: (error: unknown, connection: Mysql2Core) => void): void
  promise(): unknown
}

/** An ORM that runs its statements on connections of a pool of `mysql2`. */
export interface Mysql2Orm<Tx> {
  readonly name: string
  pool(): Mysql2CorePool
  /**
   * Has the ORM make a handle over this connection, run the callback with it, and give the connection back. Whatever
   * the ORM sends to begin and end its transaction is not sent: ours is open already, and ends after it.
   */
  open(connection: Mysql2Core, callback: (handle: Tx) => Promise<void>): Promise<unknown>
  /** @throws TX_NESTED if what the driver was made from is a transaction */
  assertRoot(): void
  /** The body has returned. @throws TX_NESTED if it has left a transaction of the ORM's open */
  settle?(handle: Tx): void
  /** The connection of a handle, the caller's or a body's; none of one without a transaction. @throws DRIVER_HANDLE_INVALID */
  beneath(handle: Tx): InnodbConnection | undefined
}

/**
 * The driver of an ORM. Its transactions are ours, on a connection of the ORM's pool, as those of `mysql2` are: so a
 * body cannot save anything after the server has ended its transaction, whatever the ORM would do about that.
 */
export function mysql2OrmDriver<Tx extends object>(orm: Mysql2Orm<Tx>): InnodbDriver<Tx> {
  const take = async (): Promise<TakenConnection<Tx>> => {
    const core = await asOurs(() => taken(orm.pool()))
    return {
      ...mysql2Connection(core.promise()),
      within: (leash, use, commit) => runIn(orm, core, new OrmLeash(leash, commit), use),
    }
  }
  const alone = aloneOn(take)
  const join = (connection: InnodbConnection, native: Tx): InnodbTransaction<Tx> =>
    transactionOn(connection, native, driver, alone, () => orm.beneath(native)?.whole)
  const driver: InnodbDriver<Tx> = {
    name: orm.name,
    engine: innodb,
    capabilities: {},
    alone,
    join(tx) {
      const connection = orm.beneath(tx)
      if (connection !== undefined) return join(connection, tx)
      return Object.assign(join(elsewhere(alone, tx), tx), { state: () => 'none' } as const)
    },
    async transaction(body, settings) {
      orm.assertRoot()
      return await runOnConnection({ driver, take, join }, body, settings)
    },
  }
  return driver
}

/** Where statements with the handle of no transaction run: each on its own. */
function elsewhere(alone: Executor, native: object): InnodbConnection {
  return {
    native,
    sole: native,
    id: 0,
    send: (text, values = []) => alone.query({ text, values }),
    release() {},
    destroy() {},
  }
}

function taken(pool: Mysql2CorePool): Promise<Mysql2Core> {
  return new Promise((resolve, reject) => {
    pool.getConnection((error, connection) => {
      if (error === null || error === undefined) resolve(connection)
      else reject(error as Error)
    })
  })
}

/** Runs a body with the ORM's handle. What the body gave or threw counts, and not what the ORM makes of it. */
async function runIn<Tx extends object, T>(
  orm: Mysql2Orm<Tx>,
  core: Mysql2Core,
  held: OrmLeash,
  use: (handle: Tx) => Promise<T>,
): Promise<T> {
  let outcome = undefined as { readonly result: T } | { readonly error: unknown } | undefined
  try {
    await orm.open(leashedCore(core, held), async (handle) => {
      noteLeashed(handle, held.leash)
      held.begun()
      try {
        const result = await use(handle)
        orm.settle?.(handle)
        outcome = { result }
      } catch (error) {
        outcome = { error }
        throw error
      } finally {
        held.over()
      }
    })
  } catch (error) {
    throw outcome !== undefined && 'error' in outcome ? outcome.error : error
  } finally {
    held.over()
  }
  if (outcome === undefined || 'error' in outcome) throw holdfastError('DRIVER_HANDLE_INVALID')
  return outcome.result
}
