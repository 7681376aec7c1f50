import { DataSource, type EntityManager } from 'typeorm'
import type { Row } from '../../../../src/core/driver.ts'
import { fromTypeOrmMysql } from '../../../../src/drivers/typeorm-mysql.ts'
import type { InnodbDriver } from '../../../../src/engines/innodb/driver.ts'
import { corePool, endPool, weakenedPool } from './core-pool.ts'
import type { Handle, InnodbClient } from './innodb-clients.ts'
import { type Handles, overHandles } from './over-handles.ts'

/** TypeORM wraps whatever a statement fails with. */
const send = async (native: EntityManager, text: string): Promise<unknown> => {
  try {
    return await native.query(text)
  } catch (error) {
    throw (error as { readonly driverError?: unknown }).driverError ?? error
  }
}

interface Caller extends Handle {
  readonly native: EntityManager
}

const handleOf = (native: EntityManager): Caller => {
  const runner = native.queryRunner
  return {
    native,
    query: (text) => send(native, text),
    async beginTransaction() {
      // One that the server has ended by itself is still open for TypeORM.
      if (runner?.isTransactionActive === true) await send(native, 'BEGIN')
      else await runner?.startTransaction()
    },
    commit: async () => await runner?.commitTransaction(),
    async rollback() {
      if (runner?.isTransactionActive === true) await runner.rollbackTransaction()
      else await send(native, 'ROLLBACK')
    },
    release: async () => await runner?.release(),
    destroy: () => undefined,
  }
}

const handles: Handles<EntityManager> = {
  of: handleOf,
  native: (handle) => (handle as Partial<Caller>).native as EntityManager,
}

export function openTypeOrm(type: 'mysql' | 'mariadb') {
  return (uri: string, size: number): InnodbClient => {
    const { hostname: host, port, username, pathname } = new URL(uri)
    const at = { host, port: Number(port), username, database: pathname.slice(1) }
    const source = new DataSource({ type, ...at, poolSize: size })
    const own = corePool(uri, size)
    const weak: DataSource[] = []
    /** It connects when it is first used. */
    const started = async (): Promise<unknown> =>
      source.isInitialized || (await source.initialize())
    const driver = overHandles(fromTypeOrmMysql(source) as never, handles)
    const later: InnodbDriver<Handle> = {
      ...driver,
      alone: {
        async query(statement) {
          await started()
          return await driver.alone.query(statement)
        },
      },
      async transaction(body, settings) {
        await started()
        return await driver.transaction(body, settings)
      },
    }
    return {
      driver: later,
      weakened(by) {
        const other = new DataSource({ type, ...at, poolSize: 1 })
        weak.push(other)
        const over = fromTypeOrmMysql(other) as never
        Object.assign(other.driver, { pool: weakenedPool(own, by) })
        return overHandles(over, handles)
      },
      async connect() {
        await started()
        const runner = source.createQueryRunner()
        await runner.connect()
        return handleOf(runner.manager)
      },
      rows: async (handle, text) => (await handle.query(text)) as readonly Row[],
      async [Symbol.asyncDispose]() {
        if (source.isInitialized) await source.destroy()
        await endPool(own)
      },
    }
  }
}
