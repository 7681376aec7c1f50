import { barrier, deferred } from '@holdfast/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  createHoldfast,
  type Holdfast,
  type HoldfastOptions,
  migrate,
} from '../../../../src/sqlite.ts'
import { callerTransaction, fresh } from '../support/caller-transaction.ts'
import { crewOf, told } from '../support/crew.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { type Handle, value } from '../support/sqlite-clients.ts'

const tables = [
  'CREATE TABLE effect (id INTEGER PRIMARY KEY, work TEXT, who TEXT)',
  'CREATE TABLE single (id INTEGER PRIMARY KEY)',
  'INSERT INTO single VALUES (1)',
]

eachSqlite(tables, (place) => {
  const crew = crewOf(place)
  const start = async (options?: HoldfastOptions): Promise<Holdfast<Handle>> => {
    const driver = place.driver()
    await migrate(driver)
    return createHoldfast(driver, options)
  }
  const effects = (key: string): number =>
    Number(value(place.open(), 'SELECT COUNT(*) FROM effect WHERE work = ?', key))
  const work =
    (key: string, by = '') =>
    async (tx: Handle): Promise<{ by: string; n: number }> => {
      tx.prepare('INSERT INTO effect (work, who) VALUES (?, ?)').run(key, by)
      await new Promise(setImmediate)
      return { by, n: 1 }
    }

  test('the body runs once, and everybody gets what it gave', async () => {
    const hf = await start()
    const key = fresh()
    const first = await hf.once(key, work(key, 'first'))
    expect(first).toEqual({ ok: true, result: { by: 'first', n: 1 }, replayed: false })
    expect(await hf.once(key, work(key, 'second'))).toEqual({ ...first, replayed: true })
    expect(effects(key)).toBe(1)
  })

  test('of a body that swallows a rollback of SQLite it is known that nothing is saved', async () => {
    const hf = await start()
    const key = fresh()
    const told = hf.once(key, async (tx) => {
      await work(key)(tx)
      try {
        tx.exec('INSERT OR ROLLBACK INTO single VALUES (1)')
      } catch {
        // It hears nothing.
      }
    })
    await expect(told).rejects.toMatchObject({ code: 'TX_ROLLED_BACK' })
    expect(effects(key)).toBe(0)
    expect(await hf.once(key, work(key))).toMatchObject({ replayed: false })
  })

  test('duplicates at the same moment, on several connections: one effect, one answer', async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => start({ wait: '20 s' })))
    const key = fresh()
    const together = barrier(12)
    const answers = await Promise.all(
      Array.from({ length: 12 }, async (_, at) => {
        await together()
        return await (all[at % 4] as Holdfast<Handle>).once(key, work(key, String(at)))
      }),
    )
    expect(effects(key)).toBe(1)
    expect(new Set(answers.map(({ result }) => JSON.stringify(result))).size).toBe(1)
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
  })

  test('duplicates whose first ones fail: one effect all the same', async () => {
    const hf = await start({ wait: '20 s' })
    const key = fresh()
    let runs = 0
    const answers = await Promise.allSettled(
      Array.from({ length: 10 }, async () =>
        hf.once(key, async (tx) => {
          runs += 1
          const mine = runs
          await work(key)(tx)
          if (mine <= 3) throw new Error('mine')
        }),
      ),
    )
    expect(answers.filter(({ status }) => status === 'rejected')).toHaveLength(3)
    expect(effects(key)).toBe(1)
  })

  describe('processes', () => {
    test('of four processes, one runs each key', async () => {
      await start()
      const ran = await crew.race('once', 4)
      expect(ran.flat()).toHaveLength(30)
      expect(new Set(ran.flat()).size).toBe(30)
      for (const key of new Set(ran.flat())) expect(effects(key)).toBe(1)
    })

    test('control: looked up and remembered without a transaction, it runs more than once', async () => {
      await start()
      const key = fresh()
      expect(await crew.collide('once by hand', 3, key)).toEqual([[key], [key], [key]])
      expect(effects(key)).toBe(3)
    })

    test('one that is killed leaves nothing, and the next one does the work', async () => {
      const hf = await start()
      const key = fresh()
      const child = await crew.start('once and hold', key)
      child.send('go')
      expect(await told(child)).toBe('holding')
      expect(await hf.once(key, work(key), { wait: 'nowait' })).toEqual({
        ok: false,
        reason: 'in-progress',
      })
      await expect(hf.once(key, work(key), { wait: 50 })).rejects.toMatchObject({
        code: 'ONCE_TIMEOUT',
        blockers: [],
      })
      const next = hf.once(key, work(key, 'next'), { wait: '20 s' })
      await crew.kill(child)
      expect(await next).toMatchObject({ result: { by: 'next' }, replayed: false })
      expect(effects(key)).toBe(1)
    })
  })

  describe("in the caller's transaction", () => {
    test('work and memory commit together', async () => {
      const hf = await start()
      const key = fresh()
      const tx = callerTransaction(place)
      expect(await hf.once(tx, key, work(key))).toMatchObject({ replayed: false })
      // The same transaction knows already.
      expect(await hf.once(tx, key, work(key))).toMatchObject({ replayed: true })
      expect(effects(key)).toBe(0)
      tx.exec('COMMIT')
      expect(effects(key)).toBe(1)
      expect(await hf.once(key, work(key))).toMatchObject({ replayed: true })
    })

    test('a duplicate waits, and does the work itself if the first one rolls back', async () => {
      const hf = await start({ wait: '20 s' })
      const key = fresh()
      const tx = callerTransaction(place)
      await hf.once(tx, key, work(key, 'first'))
      let isIn = false
      const second = hf.once(key, async (inner) => {
        isIn = true
        return await work(key, 'second')(inner)
      })
      await new Promise(setImmediate)
      expect(isIn).toBe(false)
      tx.exec('ROLLBACK')
      expect(await second).toMatchObject({ result: { by: 'second' }, replayed: false })
      expect(effects(key)).toBe(1)
    })

    test('a body that throws leaves nothing, and the transaction can go on', async () => {
      const hf = await start()
      const [key, before] = [fresh(), fresh()]
      const tx = callerTransaction(place)
      await work(before)(tx)
      const failing = hf.once(tx, key, async (inner) => {
        await work(key)(inner)
        throw new Error('mine')
      })
      await expect(failing).rejects.toThrow('mine')
      tx.exec('COMMIT')
      expect(effects(before)).toBe(1)
      expect(effects(key)).toBe(0)
      // The row of the key was committed and says nothing: the next one does the work.
      expect(await hf.once(key, work(key))).toMatchObject({ replayed: false })
      expect(await hf.once(key, work(key))).toMatchObject({ replayed: true })
    })

    test('one that has read what was changed since is refused, and does nothing', async () => {
      const hf = await start()
      const key = fresh()
      const tx = callerTransaction(place)
      value(tx, 'SELECT COUNT(*) FROM effect')
      await hf.once(key, work(key, 'first'))
      await expect(hf.once(tx, key, work(key, 'second'))).rejects.toMatchObject({
        code: 'LOCK_STALE_SNAPSHOT',
      })
      tx.exec('ROLLBACK')
      expect(effects(key)).toBe(1)
    })

    test('outside a transaction, and nested in one of ours, it is refused', async () => {
      const hf = await start()
      const key = fresh()
      await expect(hf.once(place.open(), key, work(key))).rejects.toMatchObject({
        code: 'ONCE_OUTSIDE_TRANSACTION',
      })
      const nested = hf.transaction(async () => await hf.once(key, work(key)))
      await expect(nested).rejects.toMatchObject({ code: 'TX_NESTED' })
      const forgetting = hf.transaction(async () => await hf.once.forget())
      await expect(forgetting).rejects.toMatchObject({ code: 'TX_NESTED' })
      expect(effects(key)).toBe(0)
      expect(await hf.transaction(async (tx) => await hf.once(tx, key, work(key)))).toMatchObject({
        replayed: false,
      })
      expect(effects(key)).toBe(1)
    })

    test.each([
      ['returns', false],
      ['fails', true],
    ])('a body that ends the savepoint it runs in, and %s, is told so', async (_, fails) => {
      const hf = await start()
      const key = fresh()
      const tx = callerTransaction(place)
      tx.exec('SAVEPOINT mine')
      const told = hf.once(tx, key, async (inner) => {
        await work(key)(inner)
        inner.exec('RELEASE mine')
        if (fails) throw new Error('mine')
      })
      await expect(told).rejects.toMatchObject({
        code: 'TX_ENDED_INSIDE',
        details: { ended: 'unknown' },
      })
      tx.exec('ROLLBACK')
      expect(effects(key)).toBe(0)
    })

    test.each([
      ['it is gone', [], false],
      ['another one was begun', ['BEGIN IMMEDIATE'], false],
      ['another one was begun, and the key has a row', ['BEGIN IMMEDIATE'], true],
    ])('a body that outlives its transaction is not remembered: %s', async (_, after, hasRow) => {
      const hf = await start()
      const key = fresh()
      if (hasRow) {
        const kept = callerTransaction(place)
        await hf.once(kept, key, () => Promise.reject(new Error('mine'))).catch(() => undefined)
        kept.exec('COMMIT')
      }
      const tx = callerTransaction(place)
      const outliving = hf.once(tx, key, async (inner) => {
        await work(key)(inner)
        try {
          inner.exec('INSERT OR ROLLBACK INTO single VALUES (1)')
        } catch {
          // It hears nothing.
        }
        for (const statement of after) inner.exec(statement)
        return 'swallowed'
      })
      await expect(outliving).rejects.toMatchObject({
        code: 'TX_ENDED_INSIDE',
        details: { ended: 'unknown' },
      })
      if (after.length > 0) tx.exec('COMMIT')
      expect(await hf.once(key, work(key))).toMatchObject({ replayed: false })
      expect(effects(key)).toBe(1)
    })
  })

  describe('while somebody writes', () => {
    const busy = async (hf: Holdfast<Handle>, key: string): Promise<void> => {
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
    }

    test('nowait says so at once, and the wait ends in time with whoever is in the way', async () => {
      const hf = await start()
      const key = fresh()
      await busy(hf, key)
      expect(await hf.once(key, work(key), { wait: 'nowait' })).toEqual({
        ok: false,
        reason: 'in-progress',
      })
      await expect(hf.once(key, work(key), { wait: 50 })).rejects.toMatchObject({
        code: 'ONCE_TIMEOUT',
        details: { endedBy: 'wait' },
        blockers: [{ name: `holdfast-once:${key}`, pid: process.pid }],
      })
      // There is one lock, whatever the key is.
      await expect(hf.once(fresh(), work(key), { wait: 50 })).rejects.toMatchObject({
        code: 'ONCE_TIMEOUT',
      })
      expect(effects(key)).toBe(0)
    })

    test('what was done before is told at once', async () => {
      const hf = await start()
      const [done, key] = [fresh(), fresh()]
      await hf.once(done, async () => 'done', { payload: 1 })
      await busy(hf, key)
      for (const wait of ['nowait', 50] as const) {
        expect(await hf.once(done, work(done), { wait })).toMatchObject({
          result: 'done',
          replayed: true,
        })
      }
      expect(await hf.once(done, work(done), { payload: 2 })).toEqual({
        ok: false,
        reason: 'mismatch',
      })
    })
  })

  test('another payload under the same key is refused, the same is not', async () => {
    const hf = await start()
    const key = fresh()
    const pay = (payload: unknown): Promise<unknown> => hf.once(key, work(key), { payload })
    expect(await pay({ amount: 1 })).toMatchObject({ replayed: false })
    expect(await pay({ amount: 1 })).toMatchObject({ replayed: true })
    expect(await pay({ amount: 2 })).toEqual({ ok: false, reason: 'mismatch' })
    expect(effects(key)).toBe(1)
  })

  test.each([
    ['nothing', undefined, undefined],
    ['null', null, null],
    ['text with quotes, NUL, half a pair and others', 'a"\0\ud800 ä 一 😀', 'a"\0\ud800 ä 一 😀'],
    ['a date, as JSON has it', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a long text', '€'.repeat(100_000), '€'.repeat(100_000)],
  ])('results: %s', async (_, given, stored) => {
    const hf = await start()
    const key = fresh()
    expect((await hf.once(key, async () => given)).result).toEqual(stored)
    expect((await hf.once(key, async () => 'other')).result).toEqual(stored)
  })

  test('keys are unique within a scope, and exactly as they are written', async () => {
    const hf = await start()
    const key = fresh().toUpperCase()
    for (const each of [key, key.toLowerCase(), `${key} `, 'ä'.repeat(255)])
      expect(await hf.once(each, async () => each, { scope: key })).toMatchObject({
        result: each,
        replayed: false,
      })
    expect(await hf.once(key, async () => 2, { scope: 'bob' })).toMatchObject({ replayed: false })
  })

  test('once inside of once, in one transaction', async () => {
    const hf = await start()
    const [outer, inner, failed] = [fresh(), fresh(), fresh()]
    await hf.transaction(async (tx) => {
      await hf.once(tx, outer, async () => {
        await hf
          .once(tx, failed, async () => {
            await work(failed)(tx)
            throw new Error('mine')
          })
          .catch(() => undefined)
        return (await hf.once(tx, inner, work(inner))).result
      })
    })
    expect([effects(inner), effects(failed)]).toEqual([1, 0])
    expect(await hf.once(outer, work(outer))).toMatchObject({ replayed: true })
    expect(await hf.once(inner, work(inner))).toMatchObject({ replayed: true })
  })

  test('what is past its time counts no more and is forgotten, as much as is asked for', async () => {
    const hf = await start()
    const [old, kept] = [Array.from({ length: 30 }, fresh), fresh()]
    for (const key of [...old, kept]) await hf.once(key, async () => 1)
    const db = place.open()
    for (const key of old)
      db.prepare('UPDATE holdfast_once SET expires = 1 WHERE once_key = ?').run(key)
    const [again = ''] = old
    expect(await hf.once(again, work(again))).toMatchObject({ replayed: false })
    expect(await hf.once.forget({ limit: 10 })).toBe(10)
    expect(await hf.once.forget()).toBe(19)
    for (const key of [kept, again])
      expect(await hf.once(key, async () => 2)).toMatchObject({ replayed: true })
  })

  test('a COMMIT whose answer is lost is asked for by the key', async () => {
    await start()
    const driver = place.driver()
    let lost = 0
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
    expect(effects(key)).toBe(1)
  })

  test('without the table it says so', async () => {
    const hf = createHoldfast(place.driver())
    await expect(hf.once('a', async () => 1)).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    const joined = hf.transaction(async (tx) => await hf.once(tx, 'a', async () => 1))
    await expect(joined).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })
})
