/** What a report suggests names columns that are there and numbers that were sent, on tables of all sorts. */
import { withClient } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { explore, type ExploreOptions } from '../../src/explore.ts'
import { formatReport } from '../../src/report/terminal/format-report.ts'
import type { DatabaseContext } from '../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE lot (code text PRIMARY KEY, bid int NOT NULL);
      CREATE TABLE task (code text PRIMARY KEY, owner text);
      CREATE TABLE maker (code text PRIMARY KEY);
      CREATE TABLE part (number int, qty int, maker_id text);
      CREATE TABLE ticket (id serial PRIMARY KEY, lot text REFERENCES lot)`),
  )
})

const seed = async ({ query }: DatabaseContext): Promise<void> => {
  await query('TRUNCATE lot, task, maker, part, ticket')
  await query(`INSERT INTO lot VALUES ('x', 20)`)
  await query(`INSERT INTO task VALUES ('one', NULL), ('two', NULL)`)
  await query(`INSERT INTO maker VALUES ('m')`)
  await query(`INSERT INTO ticket (lot) VALUES ('x')`)
}

type Work = (pool: Pool, who: 'a' | 'b') => Promise<unknown>
async function told(work: Work, more: Partial<ExploreOptions> = {}): Promise<string> {
  const report = await explore({
    url,
    seed,
    onProgress: () => undefined,
    budget: { ms: 60_000 },
    flows: { a: ({ pool }) => work(pool, 'a'), b: ({ pool }) => work(pool, 'b') },
    ...more,
  } as ExploreOptions)
  expect(report.verdict).toBe('race')
  return formatReport(report, { colour: false, columns: 200 })
}

describe('a fix', () => {
  test.each([
    ['is set to a number, however much that differs', { a: 30, b: 40 }],
    ['is set to numbers with the same distance', { a: 30, b: 31 }],
  ])('has no sum where a column %s', async (_, bids) => {
    const text = await told(async (pool, who) => {
      const { rows } = await pool.query(`SELECT bid FROM lot WHERE code = 'x'`)
      if (rows[0].bid >= bids[who]) return 'refused'
      await pool.query(`UPDATE lot SET bid = $1 WHERE code = 'x'`, [bids[who]])
      return 'highest'
    })
    expect(text).not.toMatch(/bid = bid/)
    expect(text).toMatch(/AND bid = 20/)
  })

  test('has the sum where the same is added every time', async () => {
    const text = await told(async (pool) => {
      const { rows } = await pool.query(`SELECT bid FROM lot WHERE code = 'x'`)
      await pool.query(`UPDATE lot SET bid = $1 WHERE code = 'x'`, [rows[0].bid + 5])
    })
    expect(text).toContain('SET bid = bid + 5')
  })

  test('names no id of a table without one', async () => {
    const text = await told(async (pool, who) => {
      const { rows } = await pool.query(
        `UPDATE task SET owner = $1 WHERE code = (SELECT code FROM task WHERE owner IS NULL ORDER BY code LIMIT 1)
         RETURNING code`,
        [who],
      )
      return rows
    })
    expect(text).not.toMatch(/\bid\b/)
  })

  test('names no id of a parent without one', async () => {
    const text = await told(async (pool) => {
      const { rows } = await pool.query(`SELECT count(*)::int AS n FROM part WHERE maker_id = 'm'`)
      if (rows[0].n >= 1) return 'refused'
      await pool.query(`INSERT INTO part (qty, maker_id) VALUES (1, 'm')`)
      return 'added'
    })
    expect(text).not.toMatch(/WHERE id =/)
  })

  test.each([
    [
      'the row',
      `SELECT bid FROM lot WHERE code = 'x'`,
      `UPDATE lot SET bid = bid + 1 WHERE code = 'x'`,
    ],
    [
      'the parent row',
      `SELECT count(*)::int AS bid FROM ticket WHERE lot = 'x'`,
      `INSERT INTO ticket (lot) VALUES ('x')`,
    ],
  ])(
    'says that a lock of %s needs a transaction, where there is none',
    async (row, read, write) => {
      const text = await told(async (pool) => {
        const { rows } = await pool.query(read)
        // What is refused after the first of them.
        if (![1, 20].includes(rows[0].bid)) return 'refused'
        await pool.query(write)
        return 'done'
      })
      expect(text).toMatch(
        new RegExp(`fix +Put BEGIN before .* COMMIT after the write, and lock ${row}`),
      )
    },
  )

  test('gives the number to the column that was asked for', async () => {
    const text = await told(async (pool) => {
      const { rows } = await pool.query('SELECT coalesce(max(number), 0) AS n FROM part')
      await pool.query('INSERT INTO part (qty, number) VALUES (1, $1)', [rows[0].n + 1])
    })
    expect(text).toContain('INDEX ON part (number)')
  })
})

test('a table that somebody else has locked costs its own fixes, and not the race', async () => {
  await withClient(url, async (other) => {
    await other.query('CREATE TABLE IF NOT EXISTS beside (id int DEFAULT 1)')
    await other.query('BEGIN; LOCK TABLE beside IN ACCESS EXCLUSIVE MODE')
    const text = await told(
      async (pool) => {
        const { rows } = await pool.query(`SELECT bid FROM lot WHERE code = 'x'`)
        await pool.query(`UPDATE lot SET bid = $1 WHERE code = 'x'`, [rows[0].bid + 5])
      },
      { oracle: { tables: ['lot'] } },
    )
    await other.query('ROLLBACK')
    expect(text).toMatch(/bid = bid \+ 5|FOR UPDATE/)
  })
})

test.each([
  `UPDATE task SET owner = 'nobody' WHERE code = 'none'`,
  `DELETE FROM task WHERE code = 'none'`,
  `INSERT INTO task VALUES ('one', 'nobody') ON CONFLICT DO NOTHING`,
])('a statement that changed no row makes nothing visible: %s', async (statement) => {
  const text = await told(async (pool) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await client.query(statement)
      const { rows } = await client.query(`SELECT bid FROM lot WHERE code = 'x'`)
      await client.query(`UPDATE lot SET bid = $1 WHERE code = 'x'`, [rows[0].bid + 5])
      await client.query('COMMIT')
    } finally {
      client.release()
    }
  })
  expect(text).toMatch(/now visible: lot/)
  expect(text).not.toMatch(/now visible: [^\n]*task/)
})

test('a crash is told by the number of the statement', async () => {
  const text = await told(
    async (pool, who) => {
      if (who === 'b') return await pool.query('SELECT 1')
      await pool.query(`UPDATE task SET owner = 'a' WHERE code = 'one'`)
      return await pool.query(`UPDATE task SET owner = 'a' WHERE code = 'two'`)
    },
    { crash: true },
  )
  const first = /after (?:the commit of )?its statement 1\b.*'one'/
  const second = /before its statement 2 .*'two'/
  expect(text.replaceAll(/\s+/g, ' ')).toMatch(new RegExp(`${first.source}|${second.source}`))
})
