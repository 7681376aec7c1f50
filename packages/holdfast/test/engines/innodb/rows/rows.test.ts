import { deferred } from '@holdfast/testkit'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { innodbRows } from '../../../../src/engines/innodb/rows/row-engine.ts'
import { createHoldfast } from '../../../../src/mysql.ts'
import { type Rows, rowsOver } from '../../../../src/rows/rows.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle, InnodbClient } from '../support/innodb-clients.ts'

eachInnodb((place) => {
  beforeAll(async () => {
    await using session = await place.session()
    await session.all(
      `CREATE TABLE account (
         id INT NOT NULL PRIMARY KEY, code VARCHAR(20) NOT NULL, part INT NOT NULL, v INT NOT NULL,
         note TEXT, body JSON, bits BIT(8), version BIGINT NOT NULL DEFAULT 1,
         UNIQUE KEY by_code (code), UNIQUE KEY by_both (part, code), KEY by_v (v),
         UNIQUE KEY by_beginning (note(10)))
       ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`,
      'CREATE TABLE old (id INT PRIMARY KEY, version INT NOT NULL) ENGINE=MyISAM',
      'CREATE VIEW seen AS SELECT * FROM account',
    )
  })
  beforeEach(async () => {
    await using session = await place.session()
    await session.all(
      'DELETE FROM account',
      `INSERT INTO account (id, code, part, v) VALUES
         (1, 'a', 1, 10), (2, 'b', 1, 20), (3, 'c', 2, 30), (4, 'it''s \\\\ "x"', 2, 40)`,
    )
  })

  const rowsOf = ({ driver }: InnodbClient): Rows<Handle> => rowsOver(innodbRows, driver)
  const inside = async <T>(pool: InnodbClient, body: (tx: Handle) => Promise<T>): Promise<T> =>
    await pool.driver.transaction(async (tx) => await body(tx.native), { scopes: [] })

  /** Somebody else has these rows until `release`. */
  const held = async (
    pool: InnodbClient,
    ids: readonly number[],
  ): Promise<{ release(): Promise<void> }> => {
    const [has, over] = [deferred(), deferred()]
    const holding = inside(pool, async (tx) => {
      await rowsOf(pool).lock(tx, 'account', ids)
      has.resolve()
      await over.promise
    })
    await has.promise
    return {
      release: async () => {
        over.resolve()
        await holding
      },
    }
  }

  test('locks rows by key and gives them in the order of the keys', async () => {
    await using pool = place.pool()
    const rows = rowsOf(pool)
    await inside(pool, async (tx) => {
      const found = await rows.lock(tx, 'account', [3, 9, 1, 3], { columns: ['id', 'v'] })
      expect(found).toEqual({
        rows: [
          { id: 3, v: 30 },
          { id: 1, v: 10 },
          { id: 3, v: 30 },
        ],
        missing: [9],
        skipped: [],
      })
      const byCode = await rows.lock(tx, 'account', ['it\'s \\ "x"'], { keyColumns: ['code'] })
      expect(byCode.rows).toMatchObject([{ id: 4, v: 40 }])
      const keys = [{ part: 1, code: 'b' }]
      const byBoth = await rows.lock(tx, 'account', keys, { keyColumns: ['part', 'code'] })
      expect(byBoth.rows).toMatchObject([{ id: 2 }])
      await expect(rows.lock(tx, 'account', [9], { expectAll: true })).rejects.toMatchObject({
        code: 'ROWS_MISSING',
      })
    })
  })

  test('they are held until COMMIT, and no others are', async () => {
    await using pool = place.pool()
    const rows = rowsOf(pool)
    const holder = await held(pool, [3, 1])
    await inside(pool, async (tx) => {
      expect((await rows.lock(tx, 'account', [2, 4], { wait: 'nowait' })).rows).toHaveLength(2)
      const how = { wait: 'nowait', keepTransaction: true } as const
      await expect(rows.lock(tx, 'account', [2, 1], how)).rejects.toMatchObject({
        code: 'ROWS_BUSY',
      })
      const began = performance.now()
      await expect(rows.lock(tx, 'account', [1], { wait: 200 })).rejects.toMatchObject({
        code: 'ROWS_TIMEOUT',
        details: { endedBy: 'wait' },
      })
      expect(performance.now() - began).toBeGreaterThan(190)
      expect(await rows.lock(tx, 'account', [1, 2, 3, 9], { wait: 'skip' })).toMatchObject({
        rows: [{ id: 2 }],
        missing: [9],
        skipped: [1, 3],
      })
    })
    await holder.release()
    await inside(pool, async (tx) => {
      expect((await rows.lock(tx, 'account', [1, 3], { wait: 'nowait' })).rows).toHaveLength(2)
    })
  })

  test.each(['locked', 'control: not locked'])(
    'of two who read and write a row none loses the other: %s',
    async (how) => {
      await using pool = place.pool()
      const rows = rowsOf(pool)
      const [read, came] = [deferred(), deferred()]
      const v = async (tx: Handle): Promise<number> => {
        if (how !== 'locked')
          return Number((await pool.rows(tx, 'SELECT v FROM account WHERE id = 1'))[0]?.['v'])
        const found = await rows.lock<{ v: number }>(tx, 'account', [1])
        return Number(found.rows[0]?.v)
      }
      const add = async (tx: Handle, by: number): Promise<void> => {
        await tx.query(`UPDATE account SET v = ${by} WHERE id = 1`)
      }
      const first = inside(pool, async (tx) => {
        const before = await v(tx)
        read.resolve()
        await came.promise
        await add(tx, before + 1)
      })
      await read.promise
      const second = inside(pool, async (tx) => {
        const reading = v(tx)
        // With the lock it does not come back before the first has committed.
        if (how === 'locked') came.resolve()
        const before = await reading
        came.resolve()
        await add(tx, before + 1)
      })
      await Promise.all([first, second])
      await using session = await place.session()
      expect(await session.value('SELECT v FROM account WHERE id = 1')).toBe(
        how === 'locked' ? 12 : 11,
      )
    },
  )

  test('whatever the order of their keys, two calls do not deadlock', async () => {
    await using pool = place.pool(6)
    const rows = rowsOf(pool)
    const keys = [1, 2, 3, 4]
    const one = async (at: number): Promise<void> => {
      const turned = [...keys.slice(at % 4), ...keys.slice(0, at % 4)]
      const given = at % 2 === 0 ? turned : turned.toReversed()
      await inside(pool, async (tx) => {
        await rows.lock(tx, 'account', given, { wait: '20 s' })
        await tx.query('UPDATE account SET v = v + 1 WHERE id = 1')
      })
    }
    await Promise.all(Array.from({ length: 60 }, async (_, at) => await one(at)))
    await using session = await place.session()
    expect(await session.value('SELECT v FROM account WHERE id = 1')).toBe(70)
  })

  test('control: locked one by one in their own order, they do', async () => {
    await using pool = place.pool()
    const rows = rowsOf(pool)
    const [one, two] = [deferred(), deferred()]
    const lock = async (first: number, mine: typeof one, others: typeof one): Promise<void> =>
      await inside(pool, async (tx) => {
        await rows.lock(tx, 'account', [first])
        mine.resolve()
        await others.promise
        await rows.lock(tx, 'account', [first === 1 ? 2 : 1], { wait: '20 s' })
      })
    const ended = await Promise.allSettled([lock(1, one, two), lock(2, two, one)])
    expect(ended.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  describe('refused', () => {
    test.each([
      ['a column that is not unique', 'account', [10], { keyColumns: ['v'] }, 'ROWS_KEY_INVALID'],
      ['a part of a key', 'account', [1], { keyColumns: ['part'] }, 'ROWS_KEY_INVALID'],
      ['the beginning of one', 'account', ['x'], { keyColumns: ['note'] }, 'ROWS_KEY_INVALID'],
      ['text for a number', 'account', ['1abc'], {}, 'ROWS_KEY_INVALID'],
      ['a table without row locks', 'old', [1], {}, 'ENGINE_TABLE_UNFIT'],
      ['a view', 'seen', [1], {}, 'ENGINE_TABLE_UNFIT'],
      ['a shared lock', 'account', [1], { strength: 'share' }, 'ENGINE_NOT_OFFERED'],
    ] as const)('%s', async (_, table, keys: readonly (string | number)[], options, code) => {
      await using pool = place.pool()
      const told = inside(pool, async (tx) => await rowsOf(pool).lock(tx, table, keys, options))
      await expect(told).rejects.toMatchObject({ code })
    })

    test('outside of a transaction, and whole tables', async () => {
      await using pool = place.pool()
      const rows = rowsOf(pool)
      const handle = await pool.connect()
      await expect(rows.lock(handle, 'account', [1])).rejects.toMatchObject({
        code: 'ROWS_OUTSIDE_TRANSACTION',
      })
      const update = { version: 1, set: { v: 1 } }
      await expect(rows.updateVersioned(handle, 'account', 1, update)).rejects.toMatchObject({
        code: 'ROWS_OUTSIDE_TRANSACTION',
      })
      await handle.release()
      await expect(
        inside(pool, async (tx) => await rows.lockTable(tx, 'account', 'exclusive')),
      ).rejects.toMatchObject({ code: 'ENGINE_NOT_OFFERED' })
    })
  })

  test('a row is changed only if it has the version that was read', async () => {
    await using pool = place.pool()
    const rows = rowsOf(pool)
    const set = { v: 11, note: "it's", body: { a: [1] } }
    await inside(pool, async (tx) => {
      const row = await rows.updateVersioned(tx, 'account', 1, {
        version: 1,
        set,
        columns: ['v', 'note', 'version'],
      })
      expect(row).toMatchObject({ v: 11, note: "it's" })
      expect(Number(row['version'])).toBe(2)
      await expect(
        rows.updateVersioned(tx, 'account', 1, { version: 1, set }),
      ).rejects.toMatchObject({
        code: 'ROWS_VERSION_CONFLICT',
        details: { reason: 'changed', foundVersion: '2' },
      })
      await expect(
        rows.updateVersioned(tx, 'account', 9, { version: 1, set }),
      ).rejects.toMatchObject({ details: { reason: 'missing' } })
    })
    await expect(
      inside(pool, async (tx) =>
        rows.updateVersioned(tx, 'account', 2, { version: 1, set: { note: new Date() } }),
      ),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('a change that takes the row its key away is no conflict: the change is there', async () => {
    await using pool = place.pool()
    const rows = rowsOf(pool)
    const body = async (tx: Handle): Promise<void> => {
      await rows.updateVersioned(tx, 'account', 1, { version: 1, set: { id: 1, v: 11 } })
      const told = rows.updateVersioned(tx, 'account', 1, { version: 2, set: { id: 91, v: 12 } })
      await expect(told).rejects.toThrow(/ROWS_KEY_INVALID.*was changed.*roll back/)
      expect(await pool.rows(tx, 'SELECT v FROM account WHERE id = 91')).toEqual([{ v: 12 }])
      await told
    }
    await expect(inside(pool, body)).rejects.toMatchObject({ code: 'ROWS_KEY_INVALID' })
    await using session = await place.session()
    expect(await session.rows('SELECT id FROM account WHERE v = 12 OR id = 91')).toEqual([])
  })

  test('names of columns are found in any case, as the server finds them', async () => {
    await using pool = place.pool()
    const rows = rowsOf(pool)
    await inside(pool, async (tx) => {
      const { rows: found } = await rows.lock(tx, 'account', [2], { keyColumns: ['ID'] })
      expect(found).toMatchObject([{ id: 2 }])
      const change = { version: 1, set: { VERSION: 40 } }
      await expect(rows.updateVersioned(tx, 'account', 2, change)).rejects.toThrow(
        /set names the version column/,
      )
      const row = await rows.updateVersioned(tx, 'account', 2, {
        version: 1,
        set: { BITS: 5n },
        columns: ['v', 'version'],
      })
      expect(Number(row['version'])).toBe(2)
      expect(await pool.rows(tx, 'SELECT HEX(bits) AS n FROM account WHERE id = 2')).toEqual([
        { n: '5' },
      ])
    })
  })

  test('optimistic changes are made again until each has had its turn', async () => {
    await using pool = place.pool(4)
    const rows = rowsOf(pool)
    const add = async (): Promise<void> => {
      await rows.optimistic(
        async (tx) => {
          const [row] = await pool.rows(tx, 'SELECT v, version FROM account WHERE id = 1')
          const version = String(row?.['version'])
          const set = { v: Number(row?.['v']) + 1 }
          await rows.updateVersioned(tx, 'account', 1, { version, set })
        },
        { retry: { attempts: 50 } },
      )
    }
    await Promise.all(Array.from({ length: 12 }, add))
    await using session = await place.session()
    expect(await session.rows('SELECT v, version FROM account WHERE id = 1')).toEqual([
      { v: 22, version: 13 },
    ])
  })

  describe('a unique key by which the server does not search', () => {
    const isMariadb = place.server.startsWith('mariadb')
    const keys: readonly (readonly [name: string, column: string, key: string])[] = isMariadb
      ? [
          ['found by a hash: TEXT', 'TEXT NOT NULL', 'UNIQUE (k)'],
          ['found by a hash: VARCHAR', 'VARCHAR(4000) NOT NULL', 'UNIQUE (k)'],
          ['IGNORED', 'VARCHAR(20) NOT NULL', 'UNIQUE KEY by_k (k) IGNORED'],
        ]
      : [['INVISIBLE', 'VARCHAR(20) NOT NULL', 'UNIQUE KEY by_k (k) INVISIBLE']]

    test.each(keys)('%s is refused, for locks, changes and claims', async (_, column, key) => {
      await using pool = place.pool()
      await using session = await place.session()
      await session.all(
        'DROP TABLE IF EXISTS hashed',
        `CREATE TABLE hashed (id INT PRIMARY KEY, k ${column}, version INT NOT NULL DEFAULT 1,
           status VARCHAR(9) NOT NULL DEFAULT 'pending', claim_token CHAR(36), lease_until TIMESTAMP(6) NULL,
           ${key}) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`,
        "INSERT INTO hashed (id, k) VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        'BEGIN',
        "SELECT id FROM hashed WHERE k = 'b' FOR UPDATE",
      )
      // Control: it locks other rows.
      await using other = await place.session()
      const alone = other.rows('SELECT id FROM hashed WHERE id = 3 FOR UPDATE NOWAIT')
      await expect(alone).rejects.toMatchObject({ errno: isMariadb ? 1205 : 3572 })
      await session.rows('ROLLBACK')
      const rows = rowsOf(pool)
      const byKey = { keyColumns: ['k'] }
      await inside(pool, async (tx) => {
        const refused = { code: 'ROWS_KEY_INVALID' }
        await expect(rows.lock(tx, 'hashed', ['b'], byKey)).rejects.toMatchObject(refused)
        await expect(
          rows.updateVersioned(tx, 'hashed', 'b', { version: 1, set: {}, ...byKey }),
        ).rejects.toMatchObject(refused)
        // By the primary key it is one row.
        expect((await rows.lock(tx, 'hashed', [2])).rows).toHaveLength(1)
      })
      const claims = createHoldfast(pool.driver).claims({ table: 'hashed', key: ['k'] })
      expect((await claims.check()).map(({ code }) => code)).toEqual(['key-not-unique'])
      await expect(claims.claim(1)).rejects.toMatchObject({ code: 'CLAIM_TABLE_UNFIT' })
    })

    test('one that was unique when it was used for the first time, and is not any more', async () => {
      await using pool = place.pool()
      await using session = await place.session()
      await session.all(
        'DROP TABLE IF EXISTS changing',
        'CREATE TABLE changing (id INT PRIMARY KEY, k INT NOT NULL, UNIQUE KEY by_k (k)) ENGINE=InnoDB',
        'INSERT INTO changing VALUES (1, 10), (2, 20)',
      )
      const rows = rowsOf(pool)
      const lock = async (): Promise<unknown> =>
        await inside(pool, async (tx) => rows.lock(tx, 'changing', [10], { keyColumns: ['k'] }))
      expect(await lock()).toMatchObject({ rows: [{ id: 1 }] })
      const refused = { code: 'ROWS_KEY_INVALID' }
      await session.rows(
        `ALTER TABLE changing ALTER INDEX by_k ${isMariadb ? 'IGNORED' : 'INVISIBLE'}`,
      )
      for (let at = 0; at < 2; at += 1) await expect(lock()).rejects.toMatchObject(refused)
      await session.rows('ALTER TABLE changing DROP INDEX by_k, ADD UNIQUE KEY another (k)')
      expect(await lock()).toMatchObject({ rows: [{ id: 1 }] })
      await session.rows('ALTER TABLE changing DROP INDEX another')
      for (let at = 0; at < 2; at += 1) await expect(lock()).rejects.toMatchObject(refused)
    })

    test('an index that is only said to be a hash is one like any other', async () => {
      await using pool = place.pool()
      await using session = await place.session()
      await session.all(
        'DROP TABLE IF EXISTS said',
        'CREATE TABLE said (id INT PRIMARY KEY, k INT NOT NULL, UNIQUE KEY by_k (k) USING HASH) ENGINE=InnoDB',
        'INSERT INTO said VALUES (1, 10)',
      )
      await inside(pool, async (tx) => {
        const found = await rowsOf(pool).lock(tx, 'said', [10], { keyColumns: ['k'] })
        expect(found.rows).toMatchObject([{ id: 1 }])
      })
    })
  })

  test('whole numbers of all sizes go into columns of bits as they are', async () => {
    await using pool = place.pool()
    await using session = await place.session()
    await session.all(
      'CREATE TABLE bits (id INT PRIMARY KEY, few BIT(8), many BIT(64), version INT NOT NULL) ENGINE=InnoDB',
      'INSERT INTO bits VALUES (1, 0, 0, 1)',
    )
    await inside(pool, async (tx) => {
      const set = { few: 5n, many: 2n ** 64n - 1n }
      await rowsOf(pool).updateVersioned(tx, 'bits', 1, { version: 1, set })
    })
    expect(await session.value("SELECT CONCAT_WS(' ', few + 0, many + 0) FROM bits")).toBe(
      '5 18446744073709551615',
    )
  })

  test('slow work is written only if the row has not moved meanwhile', async () => {
    await using pool = place.pool()
    await using session = await place.session()
    const rows = rowsOf(pool)
    let moved = 0
    const check = async (moves: number): Promise<unknown> =>
      await rows.withVersionCheck<{ v: number }, number, string>('account', 1, {
        attempts: 2,
        work: async (row) => {
          if (moved++ < moves)
            await session.rows('UPDATE account SET v = 5, version = version + 1 WHERE id = 1')
          return row.v
        },
        write: async (tx, _row, result) => {
          await tx.query(`UPDATE account SET v = ${result + 1} WHERE id = 1`)
          return 'written'
        },
      })
    expect(await check(0)).toBe('written')
    moved = 0
    expect(await check(1)).toBe('written')
    expect(await session.value('SELECT v FROM account WHERE id = 1')).toBe(6)
    moved = 0
    await expect(check(2)).rejects.toMatchObject({ code: 'ROWS_VERSION_CONFLICT' })
    await session.rows(
      'CREATE TRIGGER keeps BEFORE UPDATE ON account FOR EACH ROW SET NEW.version = OLD.version',
    )
    try {
      moved = 0
      await expect(check(0)).rejects.toMatchObject({ code: 'ROWS_CHANGE_SUPPRESSED' })
    } finally {
      await session.rows('DROP TRIGGER keeps')
    }
  })
}, 'the server')
