import { sql } from 'drizzle-orm'
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { pgTable, integer, text } from 'drizzle-orm/pg-core'
import postgres from 'postgres'
import type { Row } from '../../src/core/driver.ts'
import { type DrizzleTransactionOf, fromDrizzle } from '../../src/drivers/drizzle.ts'
import { isOlder } from '../support/installed-version.ts'
import { exerciseDriver } from './exercise-driver.ts'
import type { Harness } from './suite/harness.ts'

const account = pgTable('account', { id: text().primaryKey(), balance: integer().notNull() })
const schema = { account }
type Tx = DrizzleTransactionOf<PostgresJsDatabase<typeof schema>>

function handleOf(tx: Tx): postgres.TransactionSql {
  return (tx as unknown as { session: { client: postgres.TransactionSql } }).session.client
}

async function open(url: string): Promise<Harness<Tx>> {
  const client = postgres(url, { max: 6, onnotice: () => undefined })
  const db = drizzle({ client, schema })
  return {
    driver: fromDrizzle(db, sql),
    facts: {
      silentRollback: false,
      openState: 'unknown',
      // Since then it has the error of the socket in place of the server's last word.
      killedState: isOlder('postgres', '3.4.8') ? '57P01' : undefined,
      savepoints: { isCounted: true },
      roundTrips: { guard: 4, acquire: 3 },
    },
    sqlStateAt: (error: { cause: { code: string } }) => error.cause.code,
    driverOn: (tx) => fromDrizzle(tx, sql),
    run: async (handle, statement) => [...(await handle.execute<Row>(sql.raw(statement)))],
    unsent: (handle, statement) => handle.execute(sql.raw(statement)),
    own: async (body, isolationLevel) =>
      await db.transaction(body, isolationLevel === undefined ? undefined : { isolationLevel }),
    savepoint: async (tx, body) => await tx.transaction(body),
    async leaveOpen(tx) {
      const rows = handleOf(tx)`SELECT generate_series(1, 1000)`.cursor(1)
      await rows[Symbol.asyncIterator]().next()
    },
    async leaveCopying(tx) {
      const rows = await handleOf(tx)`COPY account FROM STDIN`.writable()
      rows.write('copied\t1\n')
    },
    lookAlikes: { 'the root database': async (use) => await use(db as unknown as Tx) },
    // Without a limit it waits for ever, once a connection was lost under a statement.
    end: async () => await client.end({ timeout: 0 }),
  }
}

exerciseDriver('Drizzle on postgres-js', open, ['the root database'])
