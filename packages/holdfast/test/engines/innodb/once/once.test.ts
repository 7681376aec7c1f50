import { barrier, deferred, waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  createHoldfast,
  type Holdfast,
  type HoldfastOptions,
  migrate,
} from '../../../../src/mysql.ts'
import { callerTransaction, fresh, somebodyWaits } from '../support/caller-transaction.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle, InnodbClient } from '../support/innodb-clients.ts'

eachInnodb((place) => {
  beforeAll(async () => {
    await using pool = place.pool()
    await using session = await place.session()
    await migrate(pool.driver)
    await session.all(
      'CREATE TABLE effect (id INT AUTO_INCREMENT PRIMARY KEY, work VARCHAR(64), who VARCHAR(64)) ENGINE=InnoDB',
      'CREATE TABLE pair (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
      'INSERT INTO pair VALUES (1, 0), (2, 0)',
    )
  })
  const database = (): string => new URL(place.url()).pathname.slice(1)
  const start = (options?: HoldfastOptions): { pool: InnodbClient; hf: Holdfast<Handle> } => {
    const pool = place.pool(14)
    // After the connections of the test were given back.
    onTestFinished(async () => await pool[Symbol.asyncDispose]())
    return { pool, hf: createHoldfast(pool.driver, options) }
  }
  const effects = async (key: string): Promise<number> => {
    await using session = await place.session()
    return Number(await session.value(`SELECT COUNT(*) FROM effect WHERE work = '${key}'`))
  }
  const work =
    (key: string, by = '') =>
    async (tx: Handle): Promise<{ by: string; n: number }> => {
      await tx.query(`INSERT INTO effect (work, who) VALUES ('${key}', '${by}')`)
      return { by, n: 1 }
    }
  const waiter = async (): Promise<void> => {
    await using session = await place.session()
    await somebodyWaits(session, database())
  }

  test('the body runs once, and everybody gets what it gave', async () => {
    const { hf } = start()
    const key = fresh()
    const first = await hf.once(key, work(key, 'first'))
    expect(first).toEqual({ ok: true, result: { by: 'first', n: 1 }, replayed: false })
    expect(await hf.once(key, work(key, 'second'))).toEqual({ ...first, replayed: true })
    expect(await effects(key)).toBe(1)
  })

  test('duplicates at the same moment: one effect, one answer', async () => {
    const { hf } = start({ wait: '20 s' })
    for (const time of [1, 2, 3]) {
      const key = fresh()
      const together = barrier(12)
      const answers = await Promise.all(
        Array.from({ length: 12 }, async (_, at) => {
          await together()
          return await hf.once(key, work(key, String(at)))
        }),
      )
      expect([time, await effects(key)]).toEqual([time, 1])
      expect(new Set(answers.map(({ result }) => JSON.stringify(result))).size).toBe(1)
      expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
    }
  })

  test('duplicates whose first ones fail: one effect all the same', async () => {
    const { hf } = start({ wait: '20 s' })
    const key = fresh()
    let runs = 0
    const answers = await Promise.allSettled(
      Array.from({ length: 10 }, async () =>
        hf.once(
          key,
          async (tx) => {
            runs += 1
            const mine = runs
            await work(key)(tx)
            if (mine <= 3) throw new Error('mine')
          },
          { retry: { attempts: 20, budget: '30 s' } },
        ),
      ),
    )
    const failed = answers.filter(({ status }) => status === 'rejected')
    expect(failed.map((each) => (each as PromiseRejectedResult).reason.message)).toEqual(
      failed.map(() => 'mine'),
    )
    expect(failed).toHaveLength(3)
    expect(await effects(key)).toBe(1)
  })

  test('control: looked up and remembered without the key being unique, it runs more than once', async () => {
    const { pool, hf } = start()
    const key = fresh()
    await using session = await place.session()
    await session.rows('CREATE TABLE IF NOT EXISTS remembered (k VARCHAR(64)) ENGINE=InnoDB')
    const together = barrier(4)
    await Promise.all(
      Array.from({ length: 4 }, () =>
        hf.transaction(async (tx) => {
          const rows = await pool.rows(tx, `SELECT k FROM remembered WHERE k = '${key}'`)
          await together()
          if (rows.length > 0) return
          await work(key)(tx)
          await tx.query(`INSERT INTO remembered VALUES ('${key}')`)
        }),
      ),
    )
    expect(await effects(key)).toBe(4)
  })

  describe.each(['READ COMMITTED', 'REPEATABLE READ'] as const)(
    "in the caller's transaction, at %s",
    (level) => {
      test('work and memory commit together', async () => {
        const { pool, hf } = start()
        const key = fresh()
        const tx = await callerTransaction(pool, level)
        expect(await hf.once(tx, key, work(key))).toMatchObject({ replayed: false })
        // The same transaction knows already.
        expect(await hf.once(tx, key, work(key))).toMatchObject({ replayed: true })
        expect(await effects(key)).toBe(0)
        await tx.commit()
        expect(await effects(key)).toBe(1)
        expect(await hf.once(key, work(key))).toMatchObject({ replayed: true })
      })

      test('a duplicate waits, and does the work itself if the first one rolls back', async () => {
        const { pool, hf } = start({ wait: '20 s' })
        const key = fresh()
        const tx = await callerTransaction(pool, level)
        await hf.once(tx, key, work(key, 'first'))
        const second = hf.once(key, work(key, 'second'))
        await waiter()
        await tx.rollback()
        expect(await second).toMatchObject({ result: { by: 'second' }, replayed: false })
        expect(await effects(key)).toBe(1)
      })

      test('a body that throws leaves nothing, and the transaction can go on', async () => {
        const { pool, hf } = start()
        const [key, before] = [fresh(), fresh()]
        const tx = await callerTransaction(pool, level)
        await work(before)(tx)
        const failing = hf.once(tx, key, async (inner) => {
          await work(key)(inner)
          throw new Error('mine')
        })
        await expect(failing).rejects.toThrow('mine')
        await tx.commit()
        expect(await effects(before)).toBe(1)
        expect(await effects(key)).toBe(0)
        // The row of the key was committed and says nothing: the next one does the work.
        expect(await hf.once(key, work(key))).toMatchObject({ replayed: false })
        expect(await hf.once(key, work(key))).toMatchObject({ replayed: true })
      })
    },
  )

  test('at REPEATABLE READ, work of another that is younger than the snapshot is found', async () => {
    const { pool, hf } = start()
    const key = fresh()
    const tx = await callerTransaction(pool, 'REPEATABLE READ')
    await tx.query('SELECT * FROM effect')
    await hf.once(key, work(key, 'first'))
    // MariaDB from 11.6 on says by itself that the snapshot is older (1020).
    const second: unknown = await hf
      .once(tx, key, work(key, 'second'))
      .catch((error: { errno?: unknown }) => error.errno)
    expect(second).toSatisfy(
      (told: unknown) => told === 1020 || JSON.stringify(told).includes('"by":"first"'),
    )
    expect(await effects(key)).toBe(1)
  })

  test('outside a transaction, and nested in one of ours, it is refused', async () => {
    const { pool, hf } = start()
    const key = fresh()
    const outside = await pool.connect()
    await expect(hf.once(outside, key, work(key))).rejects.toMatchObject({
      code: 'ONCE_OUTSIDE_TRANSACTION',
    })
    await outside.release()
    const nested = hf.transaction(async () => await hf.once(key, work(key)))
    await expect(nested).rejects.toMatchObject({ code: 'TX_NESTED' })
    expect(await hf.once(key, work(key))).toMatchObject({ replayed: false })
    expect(await effects(key)).toBe(1)
  })

  test('a body that outlives its transaction is not remembered', async () => {
    const { pool, hf } = start()
    const key = fresh()
    // Once with the row made by this call, and once with one that was there.
    for (const time of [1, 2]) {
      await using other = await place.session()
      const tx = await callerTransaction(pool)
      const told = hf.once(tx, key, async (inner) => {
        const many = Array.from({ length: 40 }, () => `('${key}', 'heavy')`).join(', ')
        await other.all(
          'BEGIN',
          `INSERT INTO effect (work, who) VALUES ${many}`,
          'UPDATE pair SET v = v + 1 WHERE id = 1',
        )
        await inner.query('UPDATE pair SET v = v + 1 WHERE id = 2')
        const outcomes = await Promise.allSettled([
          other.rows('UPDATE pair SET v = v + 1 WHERE id = 2'),
          inner.query('UPDATE pair SET v = v + 1 WHERE id = 1'),
        ])
        expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
        return 'swallowed'
      })
      await expect(told).rejects.toMatchObject({
        code: 'TX_ENDED_INSIDE',
        details: { ended: 'unknown' },
      })
      await other.rows('ROLLBACK')
      if (time === 1) {
        const kept = await callerTransaction(pool)
        await hf.once(kept, key, () => Promise.reject(new Error('mine'))).catch(() => undefined)
        await kept.commit()
      }
    }
    expect(await hf.once(key, work(key))).toMatchObject({ replayed: false })
    expect(await effects(key)).toBe(1)
  })

  test.each([
    ['returns', false],
    ['fails', true],
  ])('a body that ends the savepoint it runs in, and %s, is told so', async (_, fails) => {
    const { pool, hf } = start()
    const key = fresh()
    const tx = await callerTransaction(pool)
    await tx.query('SAVEPOINT mine')
    const told = hf.once(tx, key, async (inner) => {
      await work(key)(inner)
      await inner.query('ROLLBACK TO SAVEPOINT mine')
      if (fails) throw new Error('mine')
    })
    await expect(told).rejects.toMatchObject({
      code: 'TX_ENDED_INSIDE',
      details: { ended: 'unknown' },
    })
    await tx.rollback()
    expect(await effects(key)).toBe(0)
  })

  test('a new key makes nobody wait who is after another new one', async () => {
    const { pool, hf } = start()
    const tx = await callerTransaction(pool, 'REPEATABLE READ')
    await hf.once(tx, `m ${fresh()}`, () => Promise.resolve('mine'))
    for (const each of ['a', 'z']) {
      const key = `${each} ${fresh()}`
      expect(await hf.once(key, work(key), { wait: 'nowait' })).toMatchObject({ replayed: false })
    }
    await tx.rollback()
  })

  describe('while another is at it', () => {
    /** The look is given up after a moment, and a busy machine may take longer than that. */
    const toldWhoHas = async (hf: Holdfast<Handle>, key: string): Promise<void> => {
      const blockers = await waitUntil('it is told who has it', async () => {
        const error: unknown = await hf.once(key, work(key), { wait: 100 }).catch((e: unknown) => e)
        expect(error).toMatchObject({ code: 'ONCE_TIMEOUT', details: { endedBy: 'wait' } })
        const told = (error as { readonly blockers: readonly unknown[] }).blockers
        return told.length > 0 ? told : undefined
      })
      expect(blockers).toMatchObject([{ name: `holdfast-once:${key}` }])
    }
    const busyKey = async (hf: Holdfast<Handle>): Promise<string> => {
      const key = fresh()
      const [begun, ended] = [deferred(), deferred()]
      const first = hf.once(key, async () => {
        begun.resolve()
        await ended.promise
        return 'first'
      })
      onTestFinished(async () => {
        ended.resolve()
        await first
      })
      await begun.promise
      return key
    }

    test('wait: nowait says so at once, and the wait ends in time with whoever is in the way', async () => {
      const { hf } = start()
      const key = await busyKey(hf)
      expect(await hf.once(key, work(key), { wait: 'nowait' })).toEqual({
        ok: false,
        reason: 'in-progress',
      })
      await toldWhoHas(hf, key)
      expect(await effects(key)).toBe(0)
    })

    test('the same of a key whose row was there before', async () => {
      const { pool, hf } = start()
      const key = fresh()
      await hf.once(key, async () => 'old', { keep: 1 })
      await using session = await place.session()
      await session.rows('UPDATE holdfast_once SET expires = 1 WHERE once_key = ?', [key])
      const tx = await callerTransaction(pool)
      expect(await hf.once(tx, key, async () => 'new')).toMatchObject({ replayed: false })
      expect(await hf.once(key, work(key), { wait: 'nowait' })).toMatchObject({ ok: false })
      await toldWhoHas(hf, key)
      await tx.commit()
      expect(await hf.once(key, work(key))).toMatchObject({ result: 'new', replayed: true })
    })
  })

  test('another payload under the same key is refused, the same is not', async () => {
    const { hf } = start()
    const key = fresh()
    const pay = (payload: unknown): Promise<unknown> => hf.once(key, work(key), { payload })
    expect(await pay({ amount: 1 })).toMatchObject({ replayed: false })
    expect(await pay({ amount: 1 })).toMatchObject({ replayed: true })
    expect(await pay({ amount: 2 })).toEqual({ ok: false, reason: 'mismatch' })
    expect(await effects(key)).toBe(1)
  })

  test.each([
    ['nothing', undefined, undefined],
    ['null', null, null],
    ['text with quotes, NUL, half a pair and others', 'a"\0\ud800 ä 一 😀', 'a"\0\ud800 ä 一 😀'],
    ['a date, as JSON has it', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a long text', '€'.repeat(100_000), '€'.repeat(100_000)],
  ])('results: %s', async (_, given, stored) => {
    const { hf } = start()
    const key = fresh()
    expect((await hf.once(key, async () => given)).result).toEqual(stored)
    expect((await hf.once(key, async () => 'other')).result).toEqual(stored)
  })

  test('keys are unique within a scope, and exactly as they are written', async () => {
    const { hf } = start()
    const key = fresh().toUpperCase()
    for (const each of [key, key.toLowerCase(), `${key} `, 'ä'.repeat(255)])
      expect(await hf.once(each, async () => each, { scope: key })).toMatchObject({
        result: each,
        replayed: false,
      })
    expect(await hf.once(key, async () => 2, { scope: 'bob' })).toMatchObject({ replayed: false })
  })

  test('once inside of once, in one transaction', async () => {
    const { hf } = start()
    const [outer, inner, failed] = [fresh(), fresh(), fresh()]
    await hf.transaction(async (tx) => {
      const answer = await hf.once(tx, outer, async () => {
        await hf
          .once(tx, failed, async () => {
            await work(failed)(tx)
            throw new Error('mine')
          })
          .catch(() => undefined)
        return (await hf.once(tx, inner, work(inner))).result
      })
      expect(answer.result).toMatchObject({ n: 1 })
    })
    expect([await effects(inner), await effects(failed)]).toEqual([1, 0])
    expect(await hf.once(outer, work(outer))).toMatchObject({ replayed: true })
    expect(await hf.once(inner, work(inner))).toMatchObject({ replayed: true })
  })

  test('what is past its time counts no more and is forgotten, in batches; what somebody has is not', async () => {
    const { pool, hf } = start({ wait: '30 s' })
    const [old, kept, busy] = [Array.from({ length: 130 }, fresh), fresh(), fresh()]
    await using session = await place.session()
    await hf.once.forget()
    await Promise.all([...old, kept].map(async (key) => await hf.once(key, async () => 1)))
    await session.rows('UPDATE holdfast_once SET expires = 1 WHERE once_key IN (?)', [old])
    const tx = await callerTransaction(pool)
    await hf.once(tx, busy, async () => 1)
    const [again = ''] = old
    expect(await hf.once(again, work(again))).toMatchObject({ replayed: false })
    expect(await hf.once.forget({ limit: 110 })).toBe(110)
    expect(await hf.once.forget()).toBe(19)
    await tx.commit()
    for (const key of [kept, busy, again])
      expect(await hf.once(key, async () => 2)).toMatchObject({ replayed: true })
  })

  test('a COMMIT whose answer is lost is asked for by the key', async () => {
    const { pool } = start()
    let lost = 0
    const { driver } = pool
    const hf = createHoldfast({
      ...driver,
      async transaction(body, settings) {
        const result = await driver.transaction(body, settings)
        lost += 1
        if (lost > 1) return result
        const { holdfastError } = await import('../../../../src/core/errors.ts')
        throw holdfastError('COMMIT_UNKNOWN')
      },
    } as typeof driver)
    const key = fresh()
    expect(await hf.once(key, work(key, 'first'))).toMatchObject({ result: { by: 'first' } })
    expect(await effects(key)).toBe(1)
  })
}, 'the server')
