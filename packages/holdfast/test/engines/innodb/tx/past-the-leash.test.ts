import { beforeAll, describe, expect, test } from 'vitest'
import { createTransactions } from '../../../../src/tx/index.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle } from '../support/innodb-clients.ts'

/** The connection with callbacks that is beneath one of `mysql2/promise`. */
interface Core {
  query(text: string, answer: (error: Error | null) => void): void
  prepare(text: string, answer: (error: Error | null, statement: CorePrepared) => void): void
}

interface CorePrepared {
  execute(values: readonly unknown[], answer: (error: Error | null) => void): unknown
}

interface Prepared {
  execute(values: readonly unknown[]): Promise<unknown>
}

/** What clients have beneath their handles, and what they have made before, sends on the same connection. */
eachInnodb((place) => {
  beforeAll(async () => {
    await using session = await place.session()
    await session.rows('CREATE TABLE log (id INT PRIMARY KEY) ENGINE=InnoDB')
  })

  const logged = async (): Promise<unknown[]> => {
    await using session = await place.session()
    return (await session.rows('SELECT id FROM log ORDER BY id')).map(({ id }) => id)
  }

  const prepared = async (tx: Handle, text: string): Promise<Prepared> =>
    await (tx as unknown as { prepare(text: string): Promise<Prepared> }).prepare(text)

  const beneath = (tx: Handle, text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const { connection } = tx as unknown as { readonly connection: Core }
      connection.query(text, (error) => {
        if (error) reject(error)
        else resolve()
      })
    })

  const prepares = ['mysql2', 'mariadb'].includes(place.client)
  describe.skipIf(!prepares)('what is prepared', () => {
    test('a prepared statement is of no use when its body has returned', async () => {
      await using pool = place.pool(1)
      let kept: Prepared | undefined
      await createTransactions(pool.driver).run(async (tx) => {
        await (await prepared(tx, 'INSERT INTO log VALUES (1)')).execute([])
        kept = await prepared(tx, 'INSERT INTO log VALUES (2)')
      })
      await expect(kept?.execute([])).rejects.toMatchObject({ code: 'TX_HANDLE_ENDED' })
      expect(await logged()).toEqual([1])
    })

    // As `await using connection = tx` is compiled.
    test.each(['connection', 'what is beneath it'])(
      'a body cannot dispose of its %s',
      async (what) => {
        await using pool = place.pool(1)
        const told = createTransactions(pool.driver).run(async (tx) => {
          await tx.query('INSERT INTO log VALUES (10)')
          const beneathIt = (tx as { readonly connection?: object }).connection
          const target = (what === 'connection' ? tx : (beneathIt ?? tx)) as Disposable &
            AsyncDisposable
          const dispose = target[Symbol.asyncDispose] ?? target[Symbol.dispose]
          expect(dispose).toBeTypeOf('function')
          await Promise.resolve(dispose.call(target)).catch(() => undefined)
        })
        await expect(told).rejects.toMatchObject({ details: { ended: 'refused' } })
        expect(await logged()).not.toContain(10)
      },
    )

    test('control: one of a connection that was given back by hand is', async () => {
      await using pool = place.pool(1)
      const handle = await pool.connect()
      const kept = await prepared(handle, 'INSERT INTO log VALUES (3)')
      await handle.release()
      await kept.execute([])
      expect(await logged()).toContain(3)
    })
  })

  describe.skipIf(place.client !== 'mysql2')('what is beneath', () => {
    test('nothing that would end the transaction is sent on the connection beneath', async () => {
      await using pool = place.pool(1)
      let kept: Handle | undefined
      const told = createTransactions(pool.driver).run(async (tx) => {
        kept = tx
        await beneath(tx, 'INSERT INTO log VALUES (4)')
        await expect(beneath(tx, 'COMMIT')).rejects.toMatchObject({ code: 'TX_ENDED_INSIDE' })
      })
      await expect(told).rejects.toMatchObject({ details: { ended: 'refused' } })
      await expect(beneath(kept as Handle, 'INSERT INTO log VALUES (5)')).rejects.toMatchObject({
        code: 'TX_HANDLE_ENDED',
      })
      expect(await logged()).not.toContain(4)
      expect(await logged()).not.toContain(5)
    })

    const preparedBeneath = (tx: Handle, text: string): Promise<CorePrepared> =>
      new Promise((resolve, reject) => {
        const { connection } = tx as unknown as { readonly connection: Core }
        connection.prepare(text, (error, statement) => {
          if (error) reject(error)
          else resolve(statement)
        })
      })
    const run = (statement: CorePrepared | undefined): Promise<void> =>
      new Promise((resolve, reject) => {
        statement?.execute([], (error) => {
          if (error) reject(error)
          else resolve()
        })
      })

    test('a statement that is prepared there is of no use when its body has returned', async () => {
      await using pool = place.pool(1)
      let kept: CorePrepared | undefined
      let inner: unknown
      await createTransactions(pool.driver)
        .run(async (tx) => {
          await expect(preparedBeneath(tx, 'COMMIT')).rejects.toMatchObject({
            code: 'TX_ENDED_INSIDE',
          })
        })
        .catch(() => undefined)
      await createTransactions(pool.driver).run(async (tx) => {
        await run(await preparedBeneath(tx, 'INSERT INTO log VALUES (20)'))
        kept = await preparedBeneath(tx, 'INSERT INTO log VALUES (21)')
        inner = (await prepared(tx, 'INSERT INTO log VALUES (22)')) as { statement?: unknown }
      })
      await expect(run(kept)).rejects.toMatchObject({ code: 'TX_HANDLE_ENDED' })
      expect((inner as { readonly statement?: unknown }).statement).toBeUndefined()
      expect(await logged()).toContain(20)
      expect(await logged()).not.toContain(21)
      // Control: of a connection of the pool it is.
      const handle = await pool.connect()
      const own = await preparedBeneath(handle, 'INSERT INTO log VALUES (23)')
      await handle.release()
      await run(own)
      expect(await logged()).toContain(23)
    })

    test('control: on that of a connection of the pool it is', async () => {
      await using pool = place.pool(1)
      const handle = await pool.connect()
      await handle.release()
      await beneath(handle, 'INSERT INTO log VALUES (6)')
      expect(await logged()).toContain(6)
    })
  })
})
