import { barrier, waitUntilBlocked } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import type { Quota } from '../../../src/quota/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })

interface Row {
  readonly debited: string
  readonly credited: string
  readonly seq: string
  readonly movements: string
}

/** What the database says, by book and key. */
async function stored(book: string, key: string): Promise<Row | undefined> {
  const { rows } = await fixture.observer.query<Row>(
    `SELECT b.debited, b.credited, b.seq, (
       SELECT count(*) FROM holdfast.movement m WHERE m.bucket = b.bucket AND m.account = b.account
     ) AS movements
     FROM holdfast.account a JOIN holdfast.balance b ON b.bucket = a.bucket AND b.account = a.id
     WHERE a.book = $1 AND a.key = $2`,
    [book, key],
  )
  return rows[0]
}

describe('a limit', () => {
  test('lets exactly as much through as it says, with all callers at once', async () => {
    const quota = fixture.hf.quota({ name: 'exact', limit: 25, per: 'lifetime' })
    const other = fixture
      .create({ ledger: { coalesce: false } })
      .quota({ name: 'exact', limit: 25, per: 'lifetime' })
    const key = fresh()
    const start = barrier(60)
    const verdicts = await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        await start()
        return await (n % 2 === 0 ? quota : other).consume(key, 1, once())
      }),
    )
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(25)
    expect(await stored('exact', key)).toMatchObject({ debited: '25', seq: '25', movements: '25' })
  })

  test('control: read, check and write in three statements lets more through', async () => {
    await fixture.observer.query('CREATE TABLE IF NOT EXISTS uses (key text, amount int)')
    let worst = 0
    for (let round = 0; round < 10 && worst <= 5; round += 1) {
      const key = fresh()
      const start = barrier(20)
      const accepted = await Promise.all(
        Array.from({ length: 20 }, async () => {
          await start()
          const { rows } = await fixture.pool.query(
            'SELECT coalesce(sum(amount), 0)::int AS used FROM uses WHERE key = $1',
            [key],
          )
          if (rows[0].used + 1 > 5) return false
          await fixture.pool.query('INSERT INTO uses VALUES ($1, 1)', [key])
          return true
        }),
      )
      worst = Math.max(worst, accepted.filter(Boolean).length)
    }
    expect(worst).toBeGreaterThan(5)
  })

  test('may be a function of the key, and may need a moment', async () => {
    const quota = fixture.hf.quota({
      name: 'by-plan',
      limit: async (key) => (key.startsWith('pro-') ? 3 : 1),
      per: 'lifetime',
    })
    const [free, pro] = [`free-${fresh()}`, `pro-${fresh()}`]
    const uses = async (key: string): Promise<boolean[]> => {
      const answers: boolean[] = []
      for (let n = 0; n < 4; n += 1) answers.push((await quota.consume(key, 1, once())).ok)
      return answers
    }
    expect(await uses(free)).toEqual([true, false, false, false])
    expect(await uses(pro)).toEqual([true, true, true, false])
  })

  test('may be raised and lowered between two calls; use above it stays and stops the next', async () => {
    let limit = 5
    const quota = fixture.hf.quota({ name: 'moving', limit: () => limit, per: 'lifetime' })
    const key = fresh()
    expect(await quota.consume(key, 5, once())).toMatchObject({ ok: true, available: 0 })
    limit = 7
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: true, available: 1 })
    limit = 2
    expect(await quota.consume(key, 1, once())).toMatchObject({
      ok: false,
      reason: 'insufficient',
      available: -4,
      allowance: 2,
      debited: 6,
    })
    limit = 8
    expect(await quota.consume(key, 2, once())).toMatchObject({ ok: true, available: 0 })
  })

  test('of zero lets nothing through', async () => {
    const quota = fixture.hf.quota({ name: 'closed', limit: 0, per: 'lifetime' })
    const key = fresh()
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: false, available: 0 })
    expect(await stored('closed', key)).toBeUndefined()
  })

  test('also holds for the first request of a key, and for one that is larger than the limit', async () => {
    const quota = fixture.hf.quota({ name: 'first', limit: 10, per: 'month' })
    const key = fresh()
    expect(await quota.consume(key, 11, once())).toMatchObject({
      ok: false,
      reason: 'insufficient',
      available: 10,
      // It will never fit.
      retryAt: undefined,
    })
    expect(await stored('first', key)).toBeUndefined()
    expect(await quota.consume(key, 10, once())).toMatchObject({ ok: true, available: 0 })
    expect(await quota.consume(key, 11, once())).toMatchObject({ ok: false, retryAt: undefined })
    expect(await quota.consume(key, 1, once())).toMatchObject({
      ok: false,
      retryAt: expect.any(Date),
    })
  })
})

describe('an operation id', () => {
  test('is charged once, whatever the repetitions, and the answer is the first one', async () => {
    const quota = fixture.hf.quota({ name: 'replay', limit: 10, per: 'day' })
    const key = fresh()
    const operation = once()
    const first = await quota.consume(key, 4, operation)
    await quota.consume(key, 3, once())
    const again = await Promise.all(
      Array.from({ length: 8 }, () => quota.consume(key, 4, operation)),
    )
    for (const verdict of again) expect(verdict).toEqual({ ...first, replayed: true })
    expect(await stored('replay', key)).toMatchObject({ debited: '7', movements: '2' })
  })

  test('of a refused request may be tried again, and is accepted once it fits', async () => {
    let limit = 1
    const quota = fixture.hf.quota({ name: 'again', limit: () => limit, per: 'lifetime' })
    const [key, operation] = [fresh(), once()]
    expect(await quota.consume(key, 2, operation)).toMatchObject({ ok: false })
    limit = 2
    expect(await quota.consume(key, 2, operation)).toMatchObject({ ok: true, replayed: false })
    expect(await quota.consume(key, 2, operation)).toMatchObject({ ok: true, replayed: true })
  })

  test('with another cost is a conflict that names the field', async () => {
    const quota = fixture.hf.quota({ name: 'conflict', limit: 10, per: 'month' })
    const [key, operation] = [fresh(), once()]
    await quota.consume(key, 1, operation)
    expect(await quota.consume(key, 2, operation)).toMatchObject({
      ok: false,
      reason: 'conflict',
      field: 'amount',
    })
    expect(await stored('conflict', key)).toMatchObject({ debited: '1', movements: '1' })
  })

  test('belongs to its scope and book: others may use the same', async () => {
    const operation = once()
    const [key, other] = [fresh(), fresh()]
    const first = fixture.hf.quota({ name: 'ids-1', limit: 10, per: 'lifetime' })
    const second = fixture.hf.quota({ name: 'ids-2', limit: 10, per: 'lifetime' })
    for (const verdict of [
      await first.consume(key, 1, operation),
      await second.consume(key, 1, operation),
      await first.consume(other, 1, operation),
    ]) {
      expect(verdict).toMatchObject({ ok: true, replayed: false, debited: 1 })
    }
  })
})

describe('a refund', () => {
  test('gives back once and never more than was taken', async () => {
    const quota = fixture.hf.quota({ name: 'refund', limit: 10, per: 'month' })
    const [key, taken] = [fresh(), once()]
    await quota.consume(key, 6, taken)
    const back = { ...once(), of: taken.operationId }
    expect(await quota.refund(key, 4, back)).toMatchObject({ ok: true, available: 8, credited: 4 })
    expect(await quota.refund(key, 4, back)).toMatchObject({ ok: true, replayed: true })
    expect(await quota.refund(key, 3, { ...once(), of: taken.operationId })).toMatchObject({
      ok: false,
      reason: 'over-refund',
    })
    expect(await quota.refund(key, 2, { ...once(), of: taken.operationId })).toMatchObject({
      ok: true,
      available: 10,
    })
    expect(await quota.refund(key, 1, { ...once(), of: fresh() })).toMatchObject({
      ok: false,
      reason: 'not-found',
    })
  })

  test('released together: no more comes back than was taken', async () => {
    const quota = fixture.hf.quota({ name: 'refund-race', limit: 10, per: 'lifetime' })
    const [key, taken] = [fresh(), once()]
    await quota.consume(key, 5, taken)
    const start = barrier(10)
    const verdicts = await Promise.all(
      Array.from({ length: 10 }, async () => {
        await start()
        return await quota.refund(key, 2, { ...once(), of: taken.operationId })
      }),
    )
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(2)
    expect(await stored('refund-race', key)).toMatchObject({ debited: '5', credited: '4' })
  })
})

describe('amounts', () => {
  test('come back as bigints where the book says so, exactly', async () => {
    const quota = fixture.hf.quota({
      name: 'large',
      limit: 2n ** 61n,
      per: 'lifetime',
      amounts: 'bigint',
    })
    const key = fresh()
    expect(await quota.consume(key, 2n ** 60n + 1n, once())).toMatchObject({
      ok: true,
      available: 2n ** 60n - 1n,
      debited: 2n ** 60n + 1n,
    })
    expect(await quota.consume(key, 2n ** 60n, once())).toMatchObject({ ok: false })
  })

  test('that no number can show are refused before anything is sent', async () => {
    const quota = fixture.hf.quota({ name: 'unsafe', limit: 2n ** 53n, per: 'lifetime' })
    const key = fresh()
    await expect(quota.consume(key, 1, once())).rejects.toMatchObject({
      code: 'LEDGER_AMOUNT_UNSAFE',
    })
    expect(await stored('unsafe', key)).toBeUndefined()
  })

  test.each([0, -1, 1.5, Number.NaN, Infinity, 2 ** 53, 0n, -1n, 2n ** 62n, '1', null, undefined])(
    'refuses %s',
    async (cost) => {
      const quota = fixture.hf.quota({ name: 'hostile', limit: 10, per: 'lifetime' })
      await expect(quota.consume('k', cost as number, once())).rejects.toMatchObject({
        code: 'LEDGER_AMOUNT_INVALID',
      })
    },
  )

  test.each([-1, 1.5, Number.NaN, '1', undefined])('refuses the limit %s', async (limit) => {
    const quota = fixture.hf.quota({ name: 'refused', limit: () => limit as number, per: 'month' })
    await expect(quota.consume('k', 1, once())).rejects.toMatchObject({
      code: 'LEDGER_AMOUNT_INVALID',
    })
  })
})

describe('in a transaction of the caller', () => {
  test('it commits and rolls back with everything else, and a refusal does not end it', async () => {
    const quota = fixture.hf.quota({ name: 'joined', limit: 3, per: 'month' })
    const key = fresh()
    const tx = await callerTransaction(fixture)
    expect(await quota.consume(tx, key, 2, once())).toMatchObject({ ok: true })
    expect(await quota.consume(tx, key, 2, once())).toMatchObject({ ok: false, available: 1 })
    expect(await quota.consume(tx, key, 1, once())).toMatchObject({ ok: true })
    await tx.query('ROLLBACK')
    expect(await quota.consume(key, 3, once())).toMatchObject({ ok: true, sequence: 1 })
  })
})

describe('a denial', () => {
  /** Another session has the balance row, as any writer would for a moment. */
  async function withLockedBalance(
    quota: Quota<unknown, number>,
    key: string,
  ): Promise<{ unlock(): Promise<void> }> {
    await quota.consume(key, 3, once())
    const holder = await callerTransaction(fixture)
    const { rowCount } = await holder.query(
      `SELECT FROM holdfast.balance b JOIN holdfast.account a ON a.bucket = b.bucket AND a.id = b.account
       WHERE a.book = $1 AND a.key = $2 FOR NO KEY UPDATE OF b`,
      [quota.name, key],
    )
    expect(rowCount).toBe(1)
    return { unlock: async () => void (await holder.query('ROLLBACK')) }
  }

  test.each([{ per: 'day' }, { per: 'lifetime' }, { rolling: '1 h' }] as const)(
    'takes no lock: %j',
    async (window) => {
      const quota = fixture.hf.quota({
        name: `storm-${JSON.stringify(window)}`,
        limit: 5,
        ...window,
      })
      const key = fresh()
      const { unlock } = await withLockedBalance(quota as Quota<unknown, number>, key)
      const denied = await Promise.all(
        Array.from({ length: 20 }, () => quota.consume(key, 3, once())),
      )
      for (const verdict of denied) expect(verdict).toMatchObject({ ok: false, available: 2 })
      await unlock()
    },
  )

  test('control: what fits does wait for the lock, and is then decided by what it finds', async () => {
    const quota = fixture.hf.quota({ name: 'waits', limit: 5, per: 'lifetime' })
    const key = fresh()
    const { unlock } = await withLockedBalance(quota as Quota<unknown, number>, key)
    const tx = await callerTransaction(fixture)
    const pid = await pidOf(tx)
    const fitting = quota.consume(tx, key, 2, once())
    await waitUntilBlocked(fixture.observer, pid)
    await unlock()
    expect(await fitting).toMatchObject({ ok: true, available: 0 })
  })
})
