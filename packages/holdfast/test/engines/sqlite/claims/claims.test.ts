import { barrier } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { type ClaimsOptions, createHoldfast } from '../../../../src/sqlite.ts'
import { callerTransaction } from '../support/caller-transaction.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { expireClaims, fill, ids, openOutbox, outboxTable, rowsOf } from '../support/outbox.ts'

const tables = [
  ...outboxTable(),
  'CREATE TABLE sent (id INTEGER)',
  `CREATE TABLE odd (id TEXT PRIMARY KEY, prio INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'pending',
     claim_token TEXT, lease_until TEXT)`,
]

eachSqlite(tables, (place) => {
  test('gives the oldest rows in order, writes the lease, and each row to one caller', async () => {
    const { claims } = await openOutbox(place, { holder: 'me' })
    fill(place, 6)
    const first = await claims.claim(4)
    expect(ids(first)).toEqual([1, 2, 3, 4])
    expect(first[0]).toMatchObject({ attempt: 1, key: ['1'], row: { tenant: 'a', tries: 1 } })
    expect(Object.keys(first[0]?.row ?? {}).filter((column) => column.startsWith('#'))).toEqual([])
    expect(ids(await claims.claim(4))).toEqual([5, 6])
    expect(await claims.claim(4)).toEqual([])
    for (const { state, token, until } of rowsOf(place)) {
      expect([state, typeof token]).toEqual(['busy', 'string'])
      const leftMs = Date.parse(`${String(until).replace(' ', 'T')}Z`) - Date.now()
      expect(leftMs).toBeGreaterThan(10_000)
      expect(leftMs).toBeLessThanOrEqual(30_001)
    }
  })

  test('callers at the same moment, on several connections, get disjoint rows', async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => openOutbox(place)))
    fill(place, 20)
    const together = barrier(8)
    const claimed = await Promise.all(
      [...all, ...all].map(async ({ claims }) => {
        await together()
        return ids(await claims.claim(4))
      }),
    )
    expect(claimed.flat().toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, at) => at + 1),
    )
  })

  test('rows that are not due yet wait, and priorities come first', async () => {
    const { claims } = await openOutbox(place, {
      columns: {
        status: 'state',
        token: 'token',
        leaseUntil: 'until',
        runAt: 'due',
        priority: { column: 'tries', first: 'largest' },
      },
    })
    fill(place, 4)
    const db = place.open()
    db.exec("UPDATE outbox SET due = datetime('now', '+1 hour') WHERE id = 1")
    db.exec('UPDATE outbox SET tries = 5 WHERE id = 3')
    expect(ids(await claims.claim(10))).toEqual([3, 2, 4])
  })

  test('in a transaction of the caller: claimed when it commits, never if it does not', async () => {
    const { claims } = await openOutbox(place)
    fill(place, 2)
    const tx = callerTransaction(place)
    expect(ids(await claims.claim(tx, 1))).toEqual([1])
    expect(rowsOf(place)[0]?.state).toBe('new')
    tx.exec('ROLLBACK')
    expect(rowsOf(place)[0]?.state).toBe('new')
    tx.exec('BEGIN')
    const [claim] = await claims.claim(tx)
    tx.exec('COMMIT')
    expect((await claims.complete(claim ?? [])).kept).toHaveLength(1)
    await expect(claims.claim(place.open(), 1)).rejects.toMatchObject({
      code: 'CLAIM_OUTSIDE_TRANSACTION',
    })
    const nested = (await openOutbox(place)).hf
    const inner = nested.claims({ table: 'outbox', columns: { status: 'state' } })
    await expect(nested.transaction(async () => await inner.claim(1))).rejects.toMatchObject({
      code: 'TX_NESTED',
    })
  })

  test('one that has read what was changed since is refused', async () => {
    const { claims } = await openOutbox(place)
    fill(place, 2)
    const tx = callerTransaction(place)
    tx.prepare('SELECT * FROM outbox').all()
    await claims.claim(1)
    await expect(claims.claim(tx, 1)).rejects.toMatchObject({ code: 'CLAIM_STALE_SNAPSHOT' })
  })

  describe('finishing', () => {
    test('complete, fail, release and heartbeat do what they say', async () => {
      const { claims } = await openOutbox(place)
      fill(place, 4)
      const [a, b, c, d] = await claims.claim(4)
      if (!a || !b || !c || !d) throw new Error('four claims')
      const before = d.deadline
      expect(await claims.complete(a)).toMatchObject({ kept: [a], lost: [] })
      expect(
        await claims.fail(b, { error: new Error('no luck'), retryInMs: 3_600_000 }),
      ).toMatchObject({
        kept: [b],
        dead: [],
      })
      expect(await claims.release(c)).toMatchObject({ kept: [c] })
      expect(await claims.heartbeat(d)).toMatchObject({ kept: [d] })
      expect(d.deadline).toBeGreaterThan(before)
      expect(rowsOf(place)).toMatchObject([
        { state: 'done', tries: 1, until: null },
        {
          state: 'new',
          tries: 1,
          token: null,
          until: null,
          why: expect.stringContaining('no luck') as unknown,
        },
        { state: 'new', tries: 0, token: null, until: null },
        { state: 'busy', tries: 1 },
      ])
      expect(String(rowsOf(place)[1]?.due) > new Date().toISOString().replace('T', ' ')).toBe(true)
      // Asked once more, as after a lost answer.
      expect(await claims.complete(a)).toMatchObject({ kept: [a] })
      expect(await claims.complete(b)).toMatchObject({ lost: [b] })
    })

    test('rows that are done are deleted, if that is wanted', async () => {
      const { claims } = await openOutbox(place, { deleteDone: true })
      fill(place, 1)
      const [claim] = await claims.claim()
      expect((await claims.complete(claim ?? [])).kept).toHaveLength(1)
      expect(rowsOf(place)).toEqual([])
      expect((await claims.complete(claim ?? [])).lost).toHaveLength(1)
    })

    test('together with what the transaction wrote, or neither; of a lost one nothing', async () => {
      const { hf, claims } = await openOutbox(place)
      fill(place, 2)
      const [a, b] = await claims.claim(2)
      if (!a || !b) throw new Error('two claims')
      await hf.transaction(async (tx) => {
        tx.prepare('INSERT INTO sent VALUES (?)').run(a.row.id)
        await claims.complete(tx, a)
      })
      expireClaims(place)
      expect(await claims.recover()).toEqual({ freed: 1, dead: 0 })
      const stale = hf.transaction(async (tx) => {
        tx.prepare('INSERT INTO sent VALUES (?)').run(b.row.id)
        await claims.complete(tx, b)
      })
      await expect(stale).rejects.toMatchObject({ code: 'CLAIM_LOST', details: { lost: [['2']] } })
      expect(place.open().prepare('SELECT id FROM sent').all()).toEqual([{ id: 1 }])
    })

    test('who has lost the row changes nothing of it, whatever is asked', async () => {
      const { claims } = await openOutbox(place)
      fill(place, 1)
      const [old] = await claims.claim()
      expireClaims(place)
      await claims.recover()
      const [next] = await claims.claim()
      if (!old || !next) throw new Error('two claims')
      const before = rowsOf(place)
      for (const verb of ['complete', 'fail', 'release', 'heartbeat'] as const)
        expect(await claims[verb](old)).toMatchObject({ kept: [], lost: [old] })
      expect(rowsOf(place)).toEqual(before)
      expect(await claims.complete(next)).toMatchObject({ kept: [next] })
    })

    test('control: without the token, the old holder ends the work of the new one', async () => {
      const { claims } = await openOutbox(place)
      fill(place, 1)
      await claims.claim()
      expireClaims(place)
      await claims.recover()
      const [next] = await claims.claim()
      place.open().exec("UPDATE outbox SET state = 'done' WHERE id = 1 AND state = 'busy'")
      expect(rowsOf(place)[0]?.state).toBe('done')
      // The row is taken for one that this holder has ended.
      expect((await claims.fail(next ?? [])).lost).toHaveLength(1)
    })

    test('after its last attempt a row is dead, by failing or by falling silent', async () => {
      const { claims } = await openOutbox(place, { maxAttempts: 2 })
      fill(place, 2)
      await claims.fail(await claims.claim(2), { retryInMs: 0 })
      const [a, b] = await claims.claim(2)
      if (!a || !b) throw new Error('two claims')
      expect(await claims.fail(a, { error: 'at last' })).toMatchObject({ dead: [a] })
      expireClaims(place)
      expect(await claims.recover()).toEqual({ freed: 1, dead: 1 })
      expect(rowsOf(place)).toMatchObject([
        { state: 'dead', why: 'at last' },
        { state: 'dead', why: 'lease expired' },
      ])
      const { rows, next } = await claims.dead.list({ limit: 1 })
      expect(rows).toMatchObject([{ key: ['1'], attempts: 2, error: 'at last' }])
      expect((await claims.dead.list({ after: next as string })).rows).toMatchObject([
        { key: ['2'] },
      ])
      expect(await claims.dead.get('2')).toMatchObject({ error: 'lease expired' })
      expect(await claims.dead.retry(['1', '7'])).toMatchObject({ done: [['1']], missing: [['7']] })
      expect(await claims.dead.delete(['2'])).toMatchObject({ done: [['2']] })
      expect(ids(await claims.claim(5))).toEqual([1])
      expect(rowsOf(place)).toMatchObject([{ id: 1, tries: 1 }])
    })

    test('a dead row whose unique value somebody else has stays dead', async () => {
      const { claims } = await openOutbox(place, { maxAttempts: 1 })
      place.open().exec("CREATE UNIQUE INDEX one ON outbox (tenant) WHERE state IN ('new', 'busy')")
      fill(place, 1)
      await claims.fail(await claims.claim())
      fill(place, 1)
      expect(await claims.dead.retry('1')).toMatchObject({ done: [], taken: [['1']] })
      expect(rowsOf(place)[0]).toMatchObject({ state: 'dead' })
    })

    test('what a trigger keeps from being changed is lost, and nothing is said that is not so', async () => {
      const { claims } = await openOutbox(place)
      fill(place, 2)
      place.open().exec(
        `CREATE TRIGGER keeps BEFORE UPDATE ON outbox WHEN old.id = 1 AND old.state = 'busy'
         BEGIN SELECT RAISE(IGNORE); END`,
      )
      const both = await claims.claim(2)
      expect(both).toHaveLength(2)
      const { kept, lost } = await claims.complete(both)
      expect([ids(kept), ids(lost)]).toEqual([[2], [1]])
    })
  })

  describe('keys that take turns', () => {
    const perKey = { column: 'tenant' }

    test('one after the other, and on behind the last one', async () => {
      const { claims } = await openOutbox(place, { perKey })
      fill(place, 5, 'a')
      fill(place, 1, 'b')
      fill(place, 5, 'c')
      const tenants = async (count: number): Promise<string> =>
        (await claims.claim(count)).map(({ row }) => row.tenant).join('')
      expect(await tenants(3)).toBe('abc')
      expect(await tenants(1)).toBe('a')
      expect(await tenants(1)).toBe('c')
      expect(await tenants(4)).toBe('aacc')
    })

    test('no more of one in flight than its limit, over all connections', async () => {
      const all = await Promise.all(
        [1, 2, 3].map(() => openOutbox(place, { perKey: { ...perKey, limit: 2 } })),
      )
      fill(place, 6, 'a')
      fill(place, 1, 'b')
      const claimed = (await Promise.all(all.map(({ claims }) => claims.claim(5)))).flat()
      const of = (tenant: string): number =>
        claimed.filter(({ row }) => row.tenant === tenant).length
      expect([of('a'), of('b')]).toEqual([2, 1])
      await all[0]?.claims.complete(claimed.filter(({ row }) => row.tenant === 'a').slice(0, 1))
      expect(await all[1]?.claims.claim(5)).toHaveLength(1)
    })

    test('control: counted without the right to write, two claim more than the limit', async () => {
      fill(place, 6, 'a')
      const [one, two] = [place.open(), place.open()]
      const free =
        "SELECT id FROM outbox WHERE state = 'new' AND (SELECT COUNT(*) FROM outbox WHERE state = 'busy') < 1 LIMIT 1"
      const picked = [one, two].map((db) => (db.prepare(free).get() as { id: number }).id)
      for (const db of [one, two])
        db.prepare(
          "UPDATE outbox SET state = 'busy' WHERE id = (SELECT id FROM outbox WHERE state = 'new' LIMIT 1)",
        ).run()
      expect(picked).toHaveLength(2)
      expect(rowsOf(place).filter(({ state }) => state === 'busy')).toHaveLength(2)
    })

    test('no more of one in a span of time than its rate', async () => {
      const rate = { most: 2, per: '1 h' } as const
      const all = await Promise.all(
        [1, 2].map(() => openOutbox(place, { perKey: { ...perKey, rate } })),
      )
      fill(place, 5, 'a')
      const claimed = (await Promise.all(all.map(({ claims }) => claims.claim(5)))).flat()
      expect(claimed).toHaveLength(2)
      await all[0]?.claims.complete(claimed)
      expect(await all[0]?.claims.claim(5)).toEqual([])
      place.open().exec('UPDATE holdfast_claim_rate SET until = 1')
      expect(await all[1]?.claims.claim(5)).toHaveLength(2)
    })
  })

  describe('for the length of a transaction', () => {
    test('rows are taken and done with what the transaction wrote', async () => {
      const { hf } = await openOutbox(place)
      const taking = hf.claims<{ id: number }>({
        mode: 'transaction',
        table: 'outbox',
        columns: { status: 'state', finishedAt: 'ended' },
        values: { pending: 'new' },
      })
      fill(place, 3)
      await hf.transaction(async (tx) => {
        const taken = await taking.take(tx, 2)
        expect(taken.map(({ row }) => row.id)).toEqual([1, 2])
        await taking.finish(tx, taken)
        await expect(taking.finish(tx, taken)).rejects.toMatchObject({ code: 'CLAIM_LOST' })
      })
      await hf
        .transaction(async (tx) => {
          await taking.finish(tx, await taking.take(tx, 1))
          throw new Error('mine')
        })
        .catch(() => undefined)
      expect(rowsOf(place).map(({ state }) => state)).toEqual(['done', 'done', 'new'])
      const tx = callerTransaction(place)
      expect(await taking.take(tx, 5)).toHaveLength(1)
      tx.exec('ROLLBACK')
      await expect(taking.take(place.open())).rejects.toMatchObject({
        code: 'CLAIM_OUTSIDE_TRANSACTION',
      })
    })
  })

  test('a table that does not fit is named, and what it lacks', async () => {
    const { hf, claims } = await openOutbox(place)
    expect(await claims.check()).toEqual([])
    const codes = async (options: Partial<ClaimsOptions>): Promise<string[]> =>
      (await hf.claims({ table: 'outbox', ...options }).check()).map(({ code }) => code)
    expect(await codes({ table: 'nowhere' })).toEqual(['table-missing'])
    expect(await codes({})).toEqual(['column-missing', 'column-missing', 'column-missing'])
    const wrong = hf.claims({ table: 'outbox', columns: { status: 'state', token: 'tocken' } })
    fill(place, 1)
    place.open().exec("UPDATE outbox SET state = 'pending'")
    await expect(wrong.claim(1)).rejects.toMatchObject({ code: 'CLAIM_TABLE_UNFIT' })
    await expect(hf.claims({ table: 'nowhere' }).claim(1)).rejects.toMatchObject({
      code: 'CLAIM_TABLE_UNFIT',
      details: { findings: [{ code: 'table-missing' }] },
    })
    place.open().exec('DROP INDEX outbox_new')
    const [finding] = await claims.check()
    expect(finding).toMatchObject({ code: 'index-missing' })
    place.open().exec(finding?.fix ?? '')
    expect(await claims.check()).toEqual([])
    place.open().exec("UPDATE outbox SET state = 'new', due = 'tomorrow'")
    expect(await claims.check()).toMatchObject([
      { code: 'column-type', object: 'column outbox.due' },
    ])
  })

  test.each([
    ['NULL', 'NULL', true],
    ['binary', "x'00ff'", true],
    ['with NUL', "CAST(x'610062' AS TEXT)", true],
    ['no text', "CAST(x'61ff62' AS TEXT)", false],
  ])('rows with a key that nobody finds again keep nobody back: %s', async (_, key, isTold) => {
    // It comes before the text that NULL looks like.
    place
      .open()
      .exec(
        `DELETE FROM odd; INSERT INTO odd (id, prio) VALUES (${key}, 1), ('null', 2), ('last', 3)`,
      )
    const hf = createHoldfast(place.driver())
    const table = { table: 'odd', orderBy: ['prio'] }
    const odd = hf.claims<{ prio: number }>(table)
    expect(await odd.check()).toMatchObject(
      isTold ? [{ code: 'column-type', object: 'column odd.id' }, {}, {}] : [{}, {}],
    )
    const taken = await hf.transaction(async (tx) => {
      const rows = await hf.claims<{ prio: number }>({ ...table, mode: 'transaction' }).take(tx, 2)
      return rows.map(({ row }) => row.prio)
    })
    expect(taken).toEqual([2, 3])
    const claimed = await odd.claim(2)
    expect(claimed).toMatchObject([
      { key: ['null'], row: { prio: 2 } },
      { key: ['last'], row: { prio: 3 } },
    ])
    expect((await odd.complete(claimed)).kept).toHaveLength(2)
    expect(await odd.claim(1)).toEqual([])
  })

  test('limits in time without the table of Holdfast say so', async () => {
    const hf = createHoldfast(place.driver())
    const claims = hf.claims({
      table: 'outbox',
      columns: { status: 'state', token: 'token', leaseUntil: 'until' },
      values: { pending: 'new', claimed: 'busy' },
      perKey: { column: 'tenant', rate: { most: 1, per: '1 min' } },
    })
    fill(place, 1)
    await expect(claims.claim(1)).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    expect(rowsOf(place)[0]?.state).toBe('new')
  })
})
