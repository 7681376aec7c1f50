import { deferred } from '@holdfast/testkit'
import { CompiledQuery, type ControlledTransaction, Kysely, MysqlDialect } from 'kysely'
import type { Row } from '../../../../src/core/driver.ts'
import { fromKyselyMysql } from '../../../../src/drivers/kysely-mysql.ts'
import { corePool, endPool, weakenedPool } from './core-pool.ts'
import type { Handle, InnodbClient } from './innodb-clients.ts'
import { type Handles, overHandles } from './over-handles.ts'

type Db = Record<string, never>
type Native = Kysely<Db>

const send = async (native: Native, text: string): Promise<readonly Row[]> =>
  (await native.executeQuery<Row>(CompiledQuery.raw(text))).rows

/** Kysely's own handle for a body only sends statements. */
const ofBody = (native: Native): Handle =>
  ({ query: (text: string) => send(native, text) }) as unknown as Handle

/** A connection, and the controlled transactions that its user opens on it. */
class Caller implements Handle {
  readonly #connection: Native
  readonly #over: { resolve(): void }
  #trx: ControlledTransaction<Db> | undefined

  constructor(connection: Native, over: { resolve(): void }) {
    this.#connection = connection
    this.#over = over
  }

  get native(): Native {
    return this.#trx ?? this.#connection
  }

  get #isOpen(): boolean {
    return this.#trx !== undefined && !this.#trx.isCommitted && !this.#trx.isRolledBack
  }

  async query(text: string): Promise<unknown> {
    if (/^start transaction/i.test(text)) await this.beginTransaction()
    return await send(this.#isOpen ? this.native : this.#connection, text)
  }

  async beginTransaction(): Promise<void> {
    if (this.#isOpen) await send(this.native, 'BEGIN')
    else this.#trx = await this.#connection.startTransaction().execute()
  }

  async commit(): Promise<void> {
    await this.#trx?.commit().execute()
  }

  async rollback(): Promise<void> {
    if (this.#isOpen) await this.#trx?.rollback().execute()
    else await send(this.#connection, 'ROLLBACK')
  }

  release(): void {
    this.#over.resolve()
  }

  destroy(): void {
    this.#over.resolve()
  }
}

const handles: Handles<Native> = {
  of: ofBody,
  native: (handle) => (handle instanceof Caller ? handle.native : (handle as never)),
}

export function openKysely(uri: string, size: number): InnodbClient {
  const pool = corePool(uri, size)
  const over = (given: typeof pool): ReturnType<InnodbClient['weakened']> => {
    const db = new Kysely<Db>({ dialect: new MysqlDialect({ pool: given }) })
    const driver = fromKyselyMysql(db, given)
    return overHandles(driver as never, handles)
  }
  const root = new Kysely<Db>({ dialect: new MysqlDialect({ pool }) })
  return {
    driver: over(pool),
    weakened: (by) => over(weakenedPool(pool, by) as never),
    async connect() {
      const came = deferred<Handle>()
      const over = deferred()
      root
        .connection()
        .execute(async (connection) => {
          came.resolve(new Caller(connection, over))
          await over.promise
        })
        .catch(came.reject)
      return await came.promise
    },
    rows: async (handle, text) => (await handle.query(text)) as readonly Row[],
    [Symbol.asyncDispose]: async () => await endPool(pool),
  }
}
