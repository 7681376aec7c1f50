import { deferred } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { createHoldfast, type Holdfast } from '../../../../src/sqlite.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { type Handle, value } from '../support/sqlite-clients.ts'

const tables = [
  `CREATE TABLE doc (id INTEGER PRIMARY KEY, slug TEXT UNIQUE, kind TEXT, body TEXT, bytes BLOB, big INTEGER,
     version INTEGER NOT NULL DEFAULT 1)`,
  "INSERT INTO doc (id, slug, kind, body) VALUES (1, '01', 'a', 'one'), (2, '1', 'a', 'two')",
  `CREATE TABLE job (id INTEGER PRIMARY KEY, big INTEGER, small INTEGER DEFAULT 7, status TEXT DEFAULT 'pending',
     claim_token TEXT, lease_until TEXT)`,
  'CREATE TABLE kept (id INTEGER PRIMARY KEY, v INTEGER, version INTEGER NOT NULL)',
  'INSERT INTO kept VALUES (1, 0, 1)',
  'CREATE TRIGGER keeps BEFORE UPDATE ON kept BEGIN SELECT RAISE(IGNORE); END',
  'CREATE TABLE put_back (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, v INTEGER NOT NULL)',
  'INSERT INTO put_back VALUES (1, 1, 0)',
  'CREATE TRIGGER puts AFTER UPDATE ON put_back WHEN NEW.version = 2 BEGIN UPDATE put_back SET version = 1; END',
]

eachSqlite(tables, (place) => {
  const holdfast = (): Holdfast<Handle> => createHoldfast(place.driver())
  const doc = (id: number): Record<string, unknown> =>
    place.open().prepare('SELECT * FROM doc WHERE id = ?').get(id) as Record<string, unknown>

  test('a row is changed if it has the version, and the version counts up', async () => {
    const hf = holdfast()
    const bytes = new Uint8Array([0, 255])
    const row = await hf.transaction(
      async (tx) =>
        await hf.rows.updateVersioned(tx, 'doc', 1, {
          version: 1,
          set: { body: "it's", bytes, kind: { a: 1 }, big: 9_007_199_254_740_993n },
          columns: ['id', 'body', 'version'],
        }),
    )
    expect(row).toEqual({ id: 1, body: "it's", version: 2 })
    expect(value(place.open(), 'SELECT kind FROM doc WHERE id = 1')).toBe('{"a":1}')
    expect(value(place.open(), 'SELECT hex(bytes) || big FROM doc WHERE id = 1')).toBe(
      '00FF9007199254740993',
    )
    expect(value(place.open(), 'SELECT typeof(version) FROM doc WHERE id = 1')).toBe('integer')
    expect(doc(2)).toMatchObject({ body: 'two', version: 1 })
  })

  test('whole numbers that a number cannot hold are exact, in rows and in claims', async () => {
    const [big, other] = [9_007_199_254_740_993n, -9_223_372_036_854_775_807n]
    place.open().exec(`INSERT INTO doc (id, big, version) VALUES (${big}, ${other}, ${big});
      INSERT INTO job (id, big) VALUES (${big}, ${other})`)
    const hf = holdfast()
    const update = { version: big, set: { body: 'exact' }, columns: ['id', 'big', 'version'] }
    const row = hf.transaction(async (tx) => await hf.rows.updateVersioned(tx, 'doc', big, update))
    expect(await row).toEqual({ id: big, big: other, version: big + 1n })
    const jobs = hf.claims({ table: 'job', select: ['id', 'big', 'small'] })
    const [claim] = await jobs.claim(1)
    expect(claim).toMatchObject({ key: [String(big)], row: { id: big, big: other, small: 7 } })
    expect((await jobs.complete(claim ?? [])).kept).toHaveLength(1)
  })

  test.each([
    ['an older version', 1, { version: 0 }, { reason: 'changed', foundVersion: '1' }],
    ['no row', 9, { version: 1 }, { reason: 'missing' }],
  ])('%s is a conflict, and changes nothing', async (_, id, { version }, details) => {
    const hf = holdfast()
    await hf.transaction(async (tx) => {
      await expect(
        hf.rows.updateVersioned(tx, 'doc', id, { version, set: { body: 'x' } }),
      ).rejects.toMatchObject({ code: 'ROWS_VERSION_CONFLICT', details })
      // The transaction goes on.
      await hf.rows.updateVersioned(tx, 'doc', 2, { version: 1, set: { body: 'y' } })
    })
    expect(doc(1)['body']).toBe('one')
    expect(doc(2)['body']).toBe('y')
  })

  test('keys are compared as their columns are: a text that looks like a number is none', async () => {
    const hf = holdfast()
    await hf.transaction(async (tx) => {
      const by = { keyColumns: ['slug'], set: { body: 'by slug' }, version: 1 }
      await hf.rows.updateVersioned(tx, 'doc', '01', by)
      await expect(hf.rows.updateVersioned(tx, 'doc', '1abc', by)).rejects.toMatchObject({
        code: 'ROWS_VERSION_CONFLICT',
      })
      const set = { version: 1, set: { body: 'x' } }
      await expect(hf.rows.updateVersioned(tx, 'doc', '1abc', set)).rejects.toMatchObject({
        code: 'ROWS_VERSION_CONFLICT',
        details: { reason: 'missing' },
      })
    })
    expect([doc(1)['body'], doc(2)['body']]).toEqual(['by slug', 'two'])
  })

  test('a key of several rows, and names and values that cannot be, are refused', async () => {
    const hf = holdfast()
    await hf.transaction(async (tx) => {
      const change = (given: object): Promise<unknown> =>
        hf.rows.updateVersioned(tx, 'doc', 'keyColumns' in given ? '1' : 'a', {
          version: 1,
          set: { body: 'x' },
          keyColumns: ['kind'],
          ...given,
        })
      await expect(change({})).rejects.toMatchObject({ code: 'ROWS_KEY_INVALID' })
      for (const set of [{ body: new Date() }, { body: undefined }, { big: 2n ** 64n }])
        await expect(change({ set })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
      // SQLite would take a name that is none for a text.
      await expect(change({ keyColumns: ['nothing'] })).rejects.toThrow(/no such column/)
      await expect(change({ versionColumn: 'nothing' })).rejects.toThrow(/no such column/)
      await expect(change({ keyColumns: ['slug'], set: { 'x" = 1, "y': 1 } })).rejects.toThrow(
        /no such column/,
      )
    })
    expect([doc(1)['body'], doc(2)['body']]).toEqual(['one', 'two'])
  })

  test('a change that takes the row its key away is no conflict: the change is there', async () => {
    const hf = holdfast()
    const told = hf.transaction(async (tx) => {
      await hf.rows.updateVersioned(tx, 'doc', 1, { version: 1, set: { id: 1, kind: 'b' } })
      const lost = hf.rows.updateVersioned(tx, 'doc', 1, { version: 2, set: { id: 91 } })
      await expect(lost).rejects.toThrow(/ROWS_KEY_INVALID.*was changed.*roll back/)
      expect(value(tx, 'SELECT count(*) FROM doc WHERE id = 91')).toBe(1)
      await lost
    })
    await expect(told).rejects.toMatchObject({ code: 'ROWS_KEY_INVALID' })
    expect(doc(1)).toMatchObject({ version: 1, kind: 'a' })
  })

  test('the version column cannot be set, in whatever case it is written', async () => {
    const hf = holdfast()
    const change = { version: 1, set: { VERSION: 40 } }
    const told = hf.transaction(async (tx) => await hf.rows.updateVersioned(tx, 'doc', 1, change))
    await expect(told).rejects.toThrow(/set names the version column/)
    expect(doc(1)).toMatchObject({ version: 1 })
  })

  test.each(['kept', 'put_back'])('a trigger that undoes it is told: %s', async (table) => {
    const hf = holdfast()
    const told = hf.transaction(
      async (tx) => await hf.rows.updateVersioned(tx, table, 1, { version: 1, set: {} }),
    )
    await expect(told).rejects.toMatchObject({ code: 'ROWS_CHANGE_SUPPRESSED' })
  })

  test('where only the version was put back, the rest is changed, and the error says so', async () => {
    const hf = holdfast()
    const change = { version: 1, set: { v: 7 } }
    await hf.transaction(async (tx) => {
      const told = hf.rows.updateVersioned(tx, 'put_back', 1, change)
      await expect(told).rejects.toThrow(/put only the version back.* Roll back/s)
      expect(value(tx, 'SELECT v FROM put_back')).toBe(7)
    })
    // Let out, as it says, nothing stays.
    const again = { version: 1, set: { v: 8 } }
    const out = hf.transaction(
      async (tx) => await hf.rows.updateVersioned(tx, 'put_back', 1, again),
    )
    await expect(out).rejects.toMatchObject({ code: 'ROWS_CHANGE_SUPPRESSED' })
    expect(value(place.open(), 'SELECT v FROM put_back')).toBe(7)
  })

  describe('in a transaction of the caller', () => {
    const set = { version: 1, set: { body: 'mine' } }

    test('outside of one, behind somebody else, and with an old view', async () => {
      const hf = holdfast()
      const [tx, other] = [place.open(), place.open()]
      await expect(hf.rows.updateVersioned(tx, 'doc', 1, set)).rejects.toMatchObject({
        code: 'ROWS_OUTSIDE_TRANSACTION',
      })
      other.exec('BEGIN IMMEDIATE')
      tx.exec('BEGIN')
      await expect(
        hf.rows.updateVersioned(tx, 'doc', 1, { ...set, wait: 50 }),
      ).rejects.toMatchObject({ code: 'ROWS_TIMEOUT', details: { endedBy: 'wait' } })
      await expect(
        hf.rows.updateVersioned(tx, 'doc', 1, { ...set, wait: 'nowait' }),
      ).rejects.toMatchObject({ code: 'ROWS_BUSY' })
      value(tx, 'SELECT body FROM doc')
      other.exec("UPDATE doc SET body = 'theirs' WHERE id = 2")
      other.exec('COMMIT')
      await expect(hf.rows.updateVersioned(tx, 'doc', 1, set)).rejects.toMatchObject({
        code: 'LOCK_STALE_SNAPSHOT',
      })
      tx.exec('ROLLBACK')
      tx.exec('BEGIN')
      await hf.rows.updateVersioned(tx, 'doc', 1, set)
      tx.exec('COMMIT')
      expect(doc(1)).toMatchObject({ body: 'mine', version: 2 })
    })
  })

  test('optimistic: of many that read the same version all come through, one after the other', async () => {
    const hf = holdfast()
    const looking = place.open()
    const one = (): Promise<void> =>
      hf.rows.optimistic(
        async (tx, { attempt }) => {
          // The first time with what was read before.
          const at = attempt === 1 ? 1 : Number(value(tx, 'SELECT version FROM doc WHERE id = 1'))
          await hf.rows.updateVersioned(tx, 'doc', 1, { version: at, set: { body: 'x' } })
        },
        { retry: { attempts: 3 } },
      )
    await Promise.all(Array.from({ length: 10 }, one))
    expect(value(looking, 'SELECT version FROM doc WHERE id = 1')).toBe(11)
  })

  test('withVersionCheck: work without a lock, and written only if the row is as it was read', async () => {
    const hf = holdfast()
    const [working, goOn] = [deferred(), deferred()]
    const told = hf.rows.withVersionCheck<{ body: string }, string, void>('doc', 1, {
      work: async ({ body }) => {
        working.resolve()
        await goOn.promise
        return body.toUpperCase()
      },
      write: async (tx, _, result) =>
        void tx.prepare('UPDATE doc SET body = ? WHERE id = 1').run(result),
      attempts: 2,
    })
    await working.promise
    // Nothing is locked meanwhile.
    await hf.transaction(
      async (tx) =>
        await hf.rows.updateVersioned(tx, 'doc', 1, { version: 1, set: { body: 'other' } }),
    )
    goOn.resolve()
    await told
    expect(doc(1)).toMatchObject({ body: 'OTHER', version: 3 })
  })

  test('control: without the version, what another one wrote is lost', async () => {
    const hf = holdfast()
    const read = doc(1)
    await hf.transaction(async (tx) => void tx.exec("UPDATE doc SET body = 'other' WHERE id = 1"))
    await hf.transaction(
      async (tx) =>
        void tx
          .prepare('UPDATE doc SET body = ? WHERE id = 1')
          .run(String(read['body']).toUpperCase()),
    )
    expect(doc(1)['body']).toBe('ONE')
  })
})
