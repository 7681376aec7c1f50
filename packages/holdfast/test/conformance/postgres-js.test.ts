import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import postgres from 'postgres'
import { describe, expect, inject, test } from 'vitest'
import { lockKey } from '../../src/core/locks/lock-key.ts'
import { fromPostgresJs } from '../../src/drivers/postgres-js.ts'
import { createTransactions } from '../../src/tx/index.ts'
import { createLocks } from '../../src/entries/locks.ts'
import { isOlder } from '../support/installed-version.ts'
import { exerciseDriver } from './exercise-driver.ts'
import type { Harness } from './suite/harness.ts'
import { rejection, terminate } from './suite/setting.ts'

type Tx = postgres.TransactionSql

async function open(url: string): Promise<Harness<Tx>> {
  const sql = postgres(url, { max: 6, onnotice: () => undefined })
  return {
    driver: fromPostgresJs(sql),
    facts: {
      silentRollback: false,
      openState: 'unknown',
      // Since then it has the error of the socket in place of the server's last word.
      killedState: isOlder('postgres', '3.4.8') ? '57P01' : undefined,
      savepoints: { isCounted: true },
      roundTrips: { guard: 3, acquire: 1 },
    },
    sqlStateAt: (error: { code: string }) => error.code,
    driverOn: (tx) => fromPostgresJs(tx),
    run: async (handle, text) => [...(await handle.unsafe(text))],
    unsent: (handle, text) => handle.unsafe(text),
    own: async <T>(body: (tx: Tx) => Promise<T>, isolation?: string) => {
      const mode = isolation === undefined ? '' : `isolation level ${isolation}`
      return (await sql.begin(mode, async (tx) => ({ result: await body(tx) }))).result
    },
    savepoint: async (tx, body) => await tx.savepoint(body),
    async leaveOpen(tx) {
      const rows = tx`SELECT generate_series(1, 1000)`.cursor(1)
      await rows[Symbol.asyncIterator]().next()
    },
    async leaveCopying(tx) {
      const rows = await tx`COPY account FROM STDIN`.writable()
      rows.write('copied\t1\n')
    },
    lookAlikes: {
      'the root sql': async (use) => await use(sql as unknown as Tx),
      'a reserved connection': async (use) => {
        const reserved = await sql.reserve()
        try {
          await use(reserved as unknown as Tx)
        } finally {
          reserved.release()
        }
      },
    },
    // Without a limit it waits for ever, once a connection was lost under a statement.
    end: async () => await sql.end({ timeout: 0 }),
  }
}

const at = exerciseDriver('postgres.js', open, ['the root sql', 'a reserved connection'])

/** Loses the connection of an idle transaction, and then only returns from its body. */
const loseConnection = `
  import postgres from 'postgres'
  const closed = Promise.withResolvers()
  const sql = postgres(process.argv[1], { max: 1, onclose: () => closed.resolve() })
  const killer = postgres(process.argv[1], { max: 1 })
  await sql.begin(async (tx) => {
    const [{ pid }] = await tx\`SELECT pg_backend_pid() AS pid\`
    await killer\`SELECT pg_terminate_backend(\${pid})\`
    await closed.promise
  }).catch(() => undefined)
  setTimeout(() => process.exit(0), 1_000)`

describe('only postgres.js', () => {
  const key = lockKey('postgres.js', 1)

  test('a renaming transform does not get in the way', async () => {
    const sql = postgres(at.url, { max: 2, transform: postgres.camel })
    const locks = createLocks(fromPostgresJs(sql), { watch: false })
    await locks.guard(key, async (tx) => {
      await locks.assertHeld(tx, key)
      // Control: it does rename the columns of raw results.
      expect([...(await tx.unsafe('SELECT 1 AS snake_case'))]).toEqual([{ snakeCase: 1 }])
    })
    await sql.end()
    expect.assertions(1)
  })

  test.each([
    ['where it may', {}, {}, true],
    ['not with prepare: false', { prepare: false }, {}, false],
    ['not if told so', {}, { prepare: 'never' }, false],
  ] as const)('prepares its statements %s', async (_, client, options, prepared) => {
    const sql = postgres(at.url, { max: 1, ...client })
    const locks = createLocks(fromPostgresJs(sql, options), { watch: false })
    for (let round = 0; round < 3; round += 1) await locks.guard(key, async () => undefined)
    const rows = await sql.unsafe(
      "SELECT FROM pg_prepared_statements WHERE statement LIKE '%pg_advisory_xact_lock%'",
    )
    expect(rows.length > 0).toBe(prepared)
    await sql.end()
  })

  test('a handle of ours refuses after its end, instead of using the connection', async () => {
    const kept = await at.harness.driver.transaction(
      async ({ native }) => await Promise.resolve({ native }),
      { scopes: [] },
    )
    const refusal = expect.objectContaining({ code: 'TX_HANDLE_ENDED' })
    expect(() => kept.native`SELECT 1`).toThrow(refusal)
    expect(() => kept.native.unsafe('SELECT 1')).toThrow(refusal)
    await expect(kept.native.savepoint(async () => await Promise.resolve())).rejects.toThrow(
      refusal,
    )
  })

  test('a handle of ours is as good as any: queries, fragments, savepoints, arrays', async () => {
    await at.harness.driver.transaction(
      async ({ native: tx }) => {
        const column = tx`balance`
        const [row] = await tx`SELECT ${column} FROM (SELECT 7 AS balance) AS ${tx('named')}`
        expect(row?.['balance']).toBe(7)
        expect(await tx`SELECT ${tx.json({ a: 1 })}::jsonb AS json`).toMatchObject([
          { json: { a: 1 } },
        ])
        const pair = await tx.savepoint('pair', (inner) => [
          inner`SELECT 1 AS a`,
          inner`SELECT 2 AS a`,
        ])
        expect(pair.map(([only]) => only?.['a'])).toEqual([1, 2])
      },
      { scopes: [] },
    )
    expect.assertions(3)
  })

  test('a write that nobody awaited is told, and a part that was not needed is none', async () => {
    const { driver } = at.harness
    const forgetful = createTransactions(driver).run(async (tx) => {
      await tx`INSERT INTO account VALUES ('sent', 1)`
      void tx`INSERT INTO account VALUES ('forgotten', 1)`
    })
    expect((await rejection(forgetful)).code).toBe('TX_UNAWAITED')
    expect(await at.balance('sent')).toBeUndefined()
    await createTransactions(driver).run(async (tx) => {
      const [only, change] = [tx`AND balance = 1`, tx`UPDATE SET balance = ${2}`]
      void tx`SELECT 1`
      await tx`INSERT INTO account VALUES ('whole', 1) ON CONFLICT (id) DO ${change}`
      await tx`SELECT FROM account WHERE id = 'whole' ${[only]}`
    })
    expect(await at.balance('whole')).toBe(1)
  })

  describe('statements that the server has forgotten', () => {
    const lossy = async (tx: Tx, id: string): Promise<void> => {
      await tx.unsafe(`UPDATE account SET balance = 1 WHERE id = '${id}'`)
      await tx.unsafe('DEALLOCATE ALL')
    }

    test('do not keep a transaction of ours from being committed', async () => {
      const harness = await at.another()
      const id = await at.account(0)
      for (let round = 0; round < 8; round += 1) {
        await harness.driver.transaction(async ({ native }) => await lossy(native, id), {
          scopes: [],
        })
        expect(await at.balance(id)).toBe(1)
        await at.observer.query('UPDATE account SET balance = 0 WHERE id = $1', [id])
      }
    })

    test('control: postgres.js sends COMMIT again, in vain, and resolves', async () => {
      const sql = postgres(at.url, { max: 1 })
      const id = await at.account(0)
      await sql.begin(async (tx) => await tx`SELECT 1`)
      await sql.begin(async (tx) => await lossy(tx, id))
      expect(await at.balance(id)).toBe(0)
      await sql.end()
    })
  })

  test('an answer that does not come is an unknown outcome, after a limit', async () => {
    const sql = postgres(at.url, { max: 1 })
    const rival = await at.rival()
    await rival.query('SELECT pg_advisory_xact_lock(818)')
    const { alone } = fromPostgresJs(sql, { answerWithin: '100 ms' })
    const text = 'SELECT pg_advisory_xact_lock(818) IS NOT NULL AS taken'
    await expect(alone.query({ text, values: [] })).rejects.toMatchObject({
      code: 'COMMIT_UNKNOWN',
      details: { reason: 'unanswered' },
    })
    await rival.query('COMMIT')
    await sql.end()
  })

  test('an error behind a savepoint made by hand is the business of the body', async () => {
    const id = await at.account(0)
    const transaction = at.harness.driver.transaction(
      async ({ native: tx }) => {
        await tx.unsafe(`UPDATE account SET balance = 1 WHERE id = '${id}'`)
        await tx.unsafe('SAVEPOINT mine')
        await tx.unsafe('SELECT 1 / 0').catch(() => undefined)
        await tx.unsafe('ROLLBACK TO SAVEPOINT mine')
        return 'done'
      },
      { scopes: [] },
    )
    expect(await transaction).toBe('done')
    expect(await at.balance(id)).toBe(1)
  })

  test('a body that goes on after its connection was closed does not end the process', async () => {
    // PgBouncer closes the connection without a word while a statement is under way.
    const { pathname } = new URL(at.url)
    const pooled = new URL(inject('pgbouncerUrl'))
    pooled.pathname = pathname
    const sql = postgres(pooled.href, { max: 4, prepare: false, onnotice: () => undefined })
    const { run } = createTransactions(fromPostgresJs(sql))
    const lose = async (): Promise<unknown> => {
      const lost = run(async (tx) => {
        const [row] = await tx.unsafe('SELECT pg_backend_pid() AS pid')
        await terminate(at.observer, Number(row?.['pid']))
        await tx.unsafe('RELEASE SAVEPOINT a').catch(() => undefined)
        await tx.unsafe('SELECT 1')
      })
      return (await rejection(lost)).code
    }
    // Without care the process ends at the first or second of them.
    for (let n = 0; n < 5; n += 1) {
      for (const code of await Promise.all([lose(), lose()])) expect(code).toMatch(/^CONNECTION_/)
    }
    await sql.end({ timeout: 0 })
  })

  test('control: without our shield a lost connection ends the process', async () => {
    const args = ['--input-type=module', '--eval', loseConnection, at.url]
    const child = spawn(process.execPath, args, { cwd: import.meta.dirname })
    const [said, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect(said).toContain("Cannot read properties of null (reading 'write')")
    expect(status).toBe(1)
  })
})
