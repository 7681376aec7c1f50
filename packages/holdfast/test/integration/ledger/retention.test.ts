/** Old months can go, and the ledger is still true: checkpoints, horizons, partitions to come. */
import { sample, waitUntilBlocked } from '@holdfast/testkit'
import type pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { inspect } from '../../../src/schema/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser, emptyLedger, growOlder } from '../../support/ledger-past.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
beforeEach(() => emptyLedger(fixture.observer))

const operation = (): { operationId: string } => ({ operationId: fresh() })

/** From 0 to below 1, the same from the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function tokens(): ReturnType<typeof fixture.hf.quota<'number'>> {
  return fixture.hf.quota({ name: 'tokens', limit: 1_000, per: 'lifetime' })
}

async function count(table: string, condition = 'true'): Promise<number> {
  const { rows } = await fixture.observer.query(
    `SELECT count(*)::int AS n FROM holdfast.${table} WHERE ${condition}`,
  )
  return rows[0].n
}

async function months(): Promise<string[]> {
  const { rows } = await fixture.observer.query(
    `SELECT relname FROM pg_class JOIN pg_inherits ON inhrelid = pg_class.oid
     WHERE inhparent = 'holdfast.movement'::regclass ORDER BY relname`,
  )
  return rows.map(({ relname }) => relname)
}

/** A debit, holds of three fates, and a limit; five movements, or six with the open hold. */
async function use(key: string): Promise<string[]> {
  const quota = tokens()
  await quota.consume(key, 10, operation())
  const ids: string[] = []
  for (const ttl of ['1 h', '1 h', '90 days'] as const) {
    const verdict = await quota.hold(key, 5, { ...operation(), ttl })
    ids.push(verdict.ok ? (verdict.holdId as string) : '')
  }
  await quota.settle(ids[0] as string, 4)
  await quota.release(ids[1] as string)
  return ids
}

describe('old months', () => {
  test('are dropped on request; balances, holds and audit stay right', async () => {
    const [old, both, young] = [fresh(), fresh(), fresh()]
    await use(old)
    const [, , open] = await use(both)
    await growOlder(fixture.observer, 5)
    await use(both)
    await growOlder(fixture.observer, 3)
    await use(both)
    await use(young)
    const before = await fixture.hf.ledger.audit()
    expect(before).toMatchObject({ found: 0, movements: 30 })
    const balances = await Promise.all(
      [old, both, young].map((key) => fixture.hf.ledger.balance('tokens', key)),
    )
    const { movements } = await fixture.hf.ledger.history('tokens', both)

    const told: string[] = []
    const done = await fixture.hf.ledger.maintain({
      keepMonths: 4,
      onProgress: (line) => told.push(line),
    })
    // The month of eight months ago, and the one between, of which nothing was left.
    expect(done.monthsDropped).toHaveLength(2)
    expect(done.operationsForgotten).toBe(6)
    expect(told.join('\n')).toMatch(/dropped; 2 accounts have a checkpoint/)

    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0, movements: 18, accounts: 3 })
    expect(
      await Promise.all([old, both, young].map((key) => fixture.hf.ledger.balance('tokens', key))),
    ).toEqual(balances)
    expect((await fixture.hf.ledger.history('tokens', old)).movements).toEqual([])
    expect((await fixture.hf.ledger.history('tokens', both)).movements).toEqual(
      movements.slice(0, 12),
    )
    // A hold that was made in the dropped month can still be ended.
    expect(await tokens().settle(open as string, 5)).toMatchObject({ ok: true })
    expect(await tokens().consume(old, 1, operation())).toMatchObject({ ok: true, sequence: 7 })
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
    // Again: nothing left to do.
    expect(await fixture.hf.ledger.maintain({ keepMonths: 4 })).toMatchObject({
      monthsDropped: [],
      operationsForgotten: 0,
    })
  })

  test('leave a checkpoint that an audit starts from: without it there is a gap', async () => {
    const key = fresh()
    await use(key)
    await growOlder(fixture.observer, 6)
    await tokens().consume(key, 1, operation())
    await fixture.hf.ledger.maintain({ keepMonths: 5 })
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
    await asSuperuser(
      fixture.observer,
      `DELETE FROM holdfast.checkpoint c USING holdfast.account a
       WHERE a.bucket = c.bucket AND a.id = c.account AND a.key = '${key}'`,
    )
    const { problems } = await fixture.hf.ledger.audit()
    expect(problems.filter((problem) => problem.key === key).map(({ check }) => check)).toEqual(
      expect.arrayContaining(['gap', 'chain']),
    )
  })

  test('have no balance any more that could be asked for, except at their end', async () => {
    const key = fresh()
    await use(key)
    await growOlder(fixture.observer, 7)
    const { movements } = await fixture.hf.ledger.history('tokens', key)
    await tokens().consume(key, 1, operation())
    const [last, earlier] = movements.map(({ at }) => at)
    expect(await fixture.hf.ledger.balanceAt('tokens', key, earlier as Date)).toBeDefined()
    await fixture.hf.ledger.maintain({ keepMonths: 6 })
    const at = (moment: Date | undefined): Promise<unknown> =>
      fixture.hf.ledger.balanceAt('tokens', key, moment as Date)
    expect(await at(last)).toMatchObject({ sequence: 6, debited: 14, held: 5, allowance: 1_000 })
    expect(await at(new Date((earlier as Date).getTime() - 1_000))).toBeUndefined()
  })

  test('S24: a move that begins while a month is dropped waits for that, and is not overlooked', async () => {
    await use(fresh())
    await growOlder(fixture.observer, 8)
    await fixture.observer.query(`
      DELETE FROM holdfast.operation;
      CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
      BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NEW; END $$;
      CREATE TRIGGER wait_here BEFORE INSERT ON holdfast.checkpoint FOR EACH ROW EXECUTE FUNCTION wait_here()`)
    const { rows } = await fixture.observer.query(
      `SELECT min(date_trunc('month', at AT TIME ZONE 'UTC'))::date::text AS oldest FROM holdfast.movement`,
    )
    const [gate, dropping, moving] = (await Promise.all(
      [1, 2, 3].map(async () => {
        const client = await fixture.pool.connect()
        onTestFinished(() => client.release(true))
        return client
      }),
    )) as [pg.PoolClient, pg.PoolClient, pg.PoolClient]
    const pids = await Promise.all([dropping, moving].map(pidOf))
    await gate.query('SELECT pg_advisory_lock(42)')
    // It has looked for moves, and writes checkpoints.
    const dropped = dropping.query('SELECT holdfast.drop_month($1)', [rows[0].oldest])
    await waitUntilBlocked(fixture.observer, pids[0] as number)
    const published = moving.query('CREATE PUBLICATION begun FOR TABLE holdfast.movement')
    await waitUntilBlocked(fixture.observer, pids[1] as number)
    await gate.query('SELECT pg_advisory_unlock(42)')
    await Promise.all([dropped, published])
    await fixture.observer.query(`DROP PUBLICATION begun; DROP FUNCTION wait_here CASCADE`)
    expect(await months()).not.toContain(
      `movement_${String(rows[0].oldest).slice(0, 7).replace('-', '')}`,
    )
  })

  test.each([
    ['SQL, DMY', 'Asia/Kolkata'],
    ['German', 'Asia/Shanghai'],
    ['Postgres, MDY', 'Asia/Manila'],
    ['SQL, MDY', 'FOO+5'],
  ])('have the bounds of UTC with dates as %s in %s', async (style, zone) => {
    const client = await fixture.pool.connect()
    onTestFinished(() => client.release(true))
    await client.query(
      `SELECT set_config('datestyle', $1, false), set_config('timezone', $2, false)`,
      [style, zone],
    )
    await client.query('BEGIN')
    await client.query(`SELECT holdfast.make_month('2031-03-01')`)
    await client.query(`SET LOCAL datestyle = 'ISO'; SET LOCAL timezone = 'UTC'`)
    const { rows } = await client.query(
      `SELECT pg_get_expr(relpartbound, oid) AS bounds FROM pg_class WHERE relname = 'movement_203103'`,
    )
    await client.query('ROLLBACK')
    expect(rows).toEqual([
      { bounds: `FOR VALUES FROM ('2031-03-01 00:00:00+00') TO ('2031-04-01 00:00:00+00')` },
    ])
  })

  test('that are too young, or not the oldest, or still remembered, are refused', async () => {
    await tokens().consume(fresh(), 1, operation())
    const drop = (month: string): Promise<unknown> =>
      fixture.observer.query(`SELECT holdfast.drop_month((${month})::date)`)
    const thisMonth = `date_trunc('month', now() AT TIME ZONE 'UTC')`
    await expect(drop(thisMonth)).rejects.toMatchObject({ code: '22023' })
    await expect(drop(`${thisMonth} - interval '1 month'`)).rejects.toMatchObject({ code: '22023' })
    await growOlder(fixture.observer, 4)
    await fixture.observer.query(
      `SELECT holdfast.make_month((${thisMonth} - interval '3 months')::date)`,
    )
    await expect(drop(`${thisMonth} - interval '3 months'`)).rejects.toThrow(/older movements/)
    const { rows } = await fixture.observer.query(
      `SELECT min(date_trunc('month', at AT TIME ZONE 'UTC'))::date::text AS oldest FROM holdfast.movement`,
    )
    await expect(drop(`'${rows[0].oldest}'`)).rejects.toThrow(/still remembered/)
    for (const options of [{ keepMonths: 0 }, { keepMonths: 1.5 }, { monthsAhead: 0 }]) {
      await expect(fixture.hf.ledger.maintain(options)).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    }
  })

  test('stay if somebody reads them: nothing is half done, and it can be tried again', async () => {
    const key = fresh()
    await use(key)
    await growOlder(fixture.observer, 9)
    const before = await months()
    const reader = await callerTransaction(fixture)
    await reader.query('SELECT count(*) FROM holdfast.movement')
    const kept = fixture.hf.ledger.maintain({ keepMonths: 8, wait: '300 ms' })
    await expect(kept).rejects.toMatchObject({ code: 'LEDGER_TIMEOUT' })
    expect(await months()).toEqual(before)
    await reader.query('ROLLBACK')
    expect((await fixture.hf.ledger.maintain({ keepMonths: 8 })).monthsDropped.length).toBe(
      before.length - (await months()).length,
    )
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test('take calendar windows of their time with them', async () => {
    const name = fresh()
    const [gone, kept] = [fresh(), fresh()]
    await asSuperuser(
      fixture.observer,
      `INSERT INTO holdfast.account (bucket, id, book, key, scope, window_start, window_end)
       SELECT holdfast.bucket_of(k), holdfast.window_account(holdfast.key_account(k, '${name}', k), since),
         '${name}', k, k, since, since + interval '1 day'
       FROM unnest(ARRAY['${gone}', '${kept}']) k,
         (SELECT date_trunc('day', now(), 'UTC') - interval '100 days' AS since) past;
       INSERT INTO holdfast.balance (bucket, account)
       SELECT bucket, id FROM holdfast.account WHERE book = '${name}'`,
    )
    // Late settlements and refunds still reach a window that is over: those are kept.
    await asSuperuser(
      fixture.observer,
      `UPDATE holdfast.balance SET seq = 1, debited = 1, allowance = 9, moved_at = now()
       WHERE account = (SELECT id FROM holdfast.account WHERE key = '${kept}');
       INSERT INTO holdfast.movement (bucket, kind, account, seq, at, credit, debit, hold, credited,
         debited, held, allowance, operation_id)
       SELECT bucket, 4, account, 1, moved_at, 0, 1, 0, 0, 1, 0, 9, 'late'
       FROM holdfast.balance WHERE account = (SELECT id FROM holdfast.account WHERE key = '${kept}')`,
    )
    expect((await fixture.hf.ledger.maintain({ keepMonths: 2 })).windowsForgotten).toBe(1)
    expect(await count('account', `key = '${gone}'`)).toBe(0)
    expect(await count('account', `key = '${kept}'`)).toBe(1)
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })
})

describe('L13: what nobody needs any more goes with its months', () => {
  test('accounts of rates that are full and of rolling windows that are empty again', async () => {
    const minutely = fixture.hf.quota({ name: 'by-address', limit: 5, rate: '1 min' })
    const daily = fixture.hf.quota({ name: 'slow', limit: 5, rate: '1 day' })
    const rolling = fixture.hf.quota({ name: 'mails', limit: 5, rolling: '1 h' })
    const lifetime = tokens()
    const faces = [minutely, daily, rolling, lifetime]
    for (const face of faces) await face.consume('idle', 5, operation())
    await minutely.consume('owing', 1, operation())
    await minutely.adjust('owing', -50, { ...operation(), reason: 'r' })
    await rolling.setLimit('set', 7, operation())
    await rolling.consume('set', 1, operation())
    await fixture.observer.query('UPDATE holdfast.hold SET expires_at = now()')
    await fixture.observer.query('UPDATE holdfast.balance SET due_at = now() WHERE held > 0')
    await fixture.hf.ledger.sweep()
    await growOlder(fixture.observer, 8)
    for (const face of faces) await face.consume('busy', 5, operation())
    const done = await fixture.hf.ledger.maintain({ keepMonths: 4 })
    const { rows } = await fixture.observer.query(
      'SELECT book, key FROM holdfast.account ORDER BY book, key',
    )
    expect(rows.map(({ book, key }) => `${book} ${key}`)).toEqual([
      'by-address busy',
      'by-address owing',
      'mails busy',
      'mails set',
      // A thousand days are not over.
      'slow busy',
      'slow idle',
      'tokens busy',
      'tokens idle',
    ])
    expect(done.windowsForgotten).toBe(2)
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
    // As good as new, which is what they are now.
    for (const face of [minutely, rolling]) {
      expect(await face.consume('idle', 5, operation())).toMatchObject({ ok: true, available: 0 })
      expect((await face.consume('idle', 1, operation())).ok).toBe(false)
    }
    expect((await rolling.peek('set')).limit).toBe(7)
  })

  /** Grants, spendings, holds and refunds of eight months, then upkeep, then more of them; what audits find after it. */
  async function lived(seed: number): Promise<{ forgotten: number; found: number[] }> {
    const random = randomFrom(seed)
    const credits = fixture.hf.credits({ name: 'credits', overdraft: 20 })
    const spent: string[] = []
    const holds: string[] = []
    const step = async (): Promise<void> => {
      const key = random() < 0.5 ? 'a' : 'b'
      const [operationId, amount, dice] = [fresh(), 1 + Math.floor(random() * 30), random()]
      const of = spent[Math.floor(random() * spent.length)]
      if (dice < 0.3) await credits.grant(key, amount, { operationId })
      else if (dice < 0.6) {
        await credits.spend('a', amount, { operationId })
        spent.push(operationId)
      } else if (dice < 0.75) {
        const held = await credits.hold(key, amount, { operationId, ttl: '900 days' })
        if (held.ok) holds.push(held.holdId as string)
      } else if (dice < 0.9 && of !== undefined) {
        await credits.refund('a', amount, { operationId, of })
      } else if (holds.length > 0) {
        const hold = holds.splice(Math.floor(random() * holds.length), 1)[0] as string
        await (random() < 0.5 ? credits.settle(hold, amount) : credits.release(hold))
      }
    }
    const balances = (): Promise<unknown> =>
      Promise.all(['a', 'b'].map((each) => fixture.hf.ledger.balance('credits', each)))
    for (const months of [5, 3, 0]) {
      for (let n = 0; n < 40; n += 1) await step()
      if (months > 0) await growOlder(fixture.observer, months)
    }
    const [before, grants] = [await balances(), await count('credit_grant')]
    const { grantsForgotten: forgotten } = await fixture.hf.ledger.maintain({ keepMonths: 4 })
    const audits = [await fixture.hf.ledger.audit()]
    expect(await balances()).toEqual(before)
    expect(await count('credit_grant')).toBe(grants - forgotten)
    for (let n = 0; n < 60; n += 1) await step()
    audits.push(await fixture.hf.ledger.audit())
    return { forgotten, found: audits.map(({ found }) => found) }
  }

  test.each(sample([1, 2, 3, 5]))(
    'grants that are used up, and nothing else: seed %i',
    async (seed) => {
      const { forgotten, found } = await lived(seed)
      expect(forgotten).toBeGreaterThan(0)
      expect(found).toEqual([0, 0])
    },
  )

  test('control: a grant that is forgotten while something can come back does not add up', async () => {
    const { rows } = await fixture.observer.query<{ body: string }>(
      "SELECT pg_get_functiondef('holdfast.forget_grants'::regproc) AS body",
    )
    const [{ body }] = rows as [{ body: string }]
    onTestFinished(async () => void (await fixture.observer.query(body)))
    await fixture.observer.query(body.replace('n.grant_id IS NULL AND g.ordinal <= c.seq', 'true'))
    const { found } = await lived(8)
    expect(found[1]).toBeGreaterThan(0)
  })
})

describe('operation ids', () => {
  test('are forgotten after the horizon, not before; then an id is new again', async () => {
    const key = fresh()
    const [old, held] = [operation(), operation()]
    const quota = tokens()
    await quota.consume(key, 10, old)
    await quota.hold(key, 5, { ...held, ttl: '90 days' })
    await growOlder(fixture.observer, 1)
    const young = operation()
    await quota.consume(key, 20, young)
    expect(await quota.consume(key, 10, old)).toMatchObject({ ok: true, replayed: true })

    await fixture.hf.ledger.maintain({ operationHorizon: '10 days' })
    expect(await quota.consume(key, 20, young)).toMatchObject({ ok: true, replayed: true })
    // What made a hold that is still open is known as long as that.
    expect(await quota.hold(key, 5, { ...held, ttl: '90 days' })).toMatchObject({ replayed: true })
    expect(await quota.consume(key, 10, old)).toMatchObject({ ok: true, replayed: false })
    // Movements are older than the ids, and the audit knows from when on ids are kept.
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test('an id of a hold that ended long ago can be used again', async () => {
    const key = fresh()
    const once = operation()
    const quota = tokens()
    const first = await quota.hold(key, 5, { ...once, ttl: '1 h' })
    await quota.release(first.ok ? (first.holdId as string) : '')
    await growOlder(fixture.observer, 1)
    await fixture.hf.ledger.maintain({ operationHorizon: '10 days' })
    expect(await quota.release(first.ok ? (first.holdId as string) : '')).toMatchObject({
      reason: 'not-found',
    })
    expect(await quota.hold(key, 6, { ...once, ttl: '1 h' })).toMatchObject({
      ok: true,
      replayed: false,
      held: 6,
    })
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test('a horizon within reach of a retry is refused', async () => {
    await expect(fixture.hf.ledger.maintain({ operationHorizon: '23 h' })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    await expect(
      fixture.observer.query(`SELECT holdfast.forget_operations(now(), 0, 4095)`),
    ).rejects.toMatchObject({ code: '22023' })
  })

  test('without being asked nothing is forgotten or dropped', async () => {
    const key = fresh()
    await use(key)
    await growOlder(fixture.observer, 30)
    const before = [await count('operation'), await count('movement'), await count('hold')]
    expect(await fixture.hf.ledger.maintain()).toMatchObject({
      monthsDropped: [],
      operationsForgotten: 0,
      windowsForgotten: 0,
    })
    expect([await count('operation'), await count('movement'), await count('hold')]).toEqual(before)
  })
})

describe('months to come', () => {
  test('are made ahead, and made once', async () => {
    const done = await fixture.hf.ledger.maintain({ monthsAhead: 15 })
    expect(done).toMatchObject({ monthsMade: 3, monthsAhead: 15 })
    expect(await fixture.hf.ledger.maintain({ monthsAhead: 15 })).toMatchObject({ monthsMade: 0 })
  })

  test('that are running out are a finding of the doctor', async () => {
    const months = async (): Promise<string[]> =>
      (await inspect(fromPg(fixture.observer))).flatMap(({ code, fix }) =>
        code === 'months-missing' ? [fix] : [],
      )
    expect(await months()).toEqual([])
    const { rows } = await fixture.observer.query(
      `SELECT string_agg(format('DROP TABLE holdfast.%I', relname), ';') AS drops
       FROM pg_class JOIN pg_inherits ON inhrelid = pg_class.oid
       WHERE inhparent = 'holdfast.movement'::regclass
         AND relname > to_char(now() AT TIME ZONE 'UTC' + interval '1 month', '"movement_"YYYYMM')
         AND relname <> 'movement_default'`,
    )
    await fixture.observer.query(rows[0].drops)
    expect(await months()).toEqual(['Run `holdfast maintain`, every month.'])
    await fixture.hf.ledger.maintain()
    expect(await months()).toEqual([])
  })

  test('that were forgotten go to the default partition, and from there where they belong', async () => {
    const name = `movement_${new Date().toISOString().slice(0, 7).replace('-', '')}`
    const key = fresh()
    await asSuperuser(
      fixture.observer,
      `CREATE TABLE holdfast.kept AS SELECT * FROM holdfast.${name};
       DROP TABLE holdfast.${name};
       INSERT INTO holdfast.movement SELECT * FROM holdfast.kept; DROP TABLE holdfast.kept`,
    )
    await tokens().consume(key, 1, operation())
    const stray = await count('movement_default')
    expect(stray).toBeGreaterThan(0)
    const before = await fixture.hf.ledger.audit()
    const { movementsMoved } = await fixture.hf.ledger.maintain()
    expect(movementsMoved).toBe(stray)
    expect(await count('movement_default')).toBe(0)
    expect(await count(name)).toBe(stray)
    expect(await fixture.hf.ledger.audit()).toMatchObject({
      found: before.found,
      movements: before.movements,
    })
    // It is a partition like before: append-only, and in use.
    await tokens().consume(key, 1, operation())
    await expect(fixture.observer.query('DELETE FROM holdfast.movement')).rejects.toMatchObject({
      code: '23001',
    })
  })
})
