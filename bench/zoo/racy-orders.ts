/** Races of claims, of locks that protect nothing, of readers in between, and of definitions. */
import { spendBy, sum, sumOfTwoReads, transfer, transferBy } from './deeds.ts'
import { account, jobs } from './grounds.ts'
import { type Entry, numberOf } from './model.ts'

const oldestJob = 'SELECT id FROM job WHERE owner IS NULL ORDER BY id LIMIT 1'

export const racyOrders: readonly Entry[] = [
  {
    name: 'claim-without-a-guard',
    racy: true,
    why: 'both see job 1 free and take it; a serial order gives out both jobs',
    ...jobs,
    async flows(kit) {
      const id = await numberOf(kit.ask(oldestJob), 'id')
      await kit.wait()
      await kit.ask('UPDATE job SET owner = $1 WHERE id = $2', kit.who, id)
      return kit.answer(200, { job: id })
    },
  },
  {
    name: 'claim-in-one-statement',
    racy: true,
    why: 'whoever waited for the row finds it by its id again, though it has an owner by now',
    ...jobs,
    async flows(kit) {
      await kit.wait()
      const rows = await kit.ask(
        `UPDATE job SET owner = $1 WHERE id = (${oldestJob}) RETURNING id`,
        kit.who,
      )
      return kit.answer(200, { job: Number(rows[0]?.['id']) })
    },
  },
  {
    name: 'claim-released-too-early',
    racy: true,
    why: 'in autocommit the row lock is gone when SKIP LOCKED has answered',
    ...jobs,
    async flows(kit) {
      const id = await numberOf(kit.ask(`${oldestJob} FOR UPDATE SKIP LOCKED`), 'id')
      await kit.wait()
      await kit.ask('UPDATE job SET owner = $1 WHERE id = $2', kit.who, id)
      return kit.answer(200, { job: id })
    },
  },
  {
    name: 'advisory-locks-on-different-keys',
    racy: true,
    why: 'each takes a key of its own, so nobody waits for anybody',
    ...account,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await ask('SELECT 1 AS got FROM pg_advisory_xact_lock($1::int)', kit.who === 'a' ? 11 : 12)
        return await spendBy(kit, ask)
      }),
  },
  {
    name: 'advisory-lock-released-too-early',
    racy: true,
    why: 'the lock ends with the transaction that reads, and the write is another one',
    ...account,
    async flows(kit) {
      const n = await kit.transaction(async (ask) => {
        await ask('SELECT 1 AS got FROM pg_advisory_xact_lock(11)')
        return await numberOf(ask('SELECT n FROM account WHERE id = 1'))
      })
      await kit.wait()
      await kit.ask('UPDATE account SET n = $1 WHERE id = 1', n - 30)
      return kit.answer(200)
    },
  },
  {
    name: 'sum-of-two-reads',
    racy: true,
    why: 'the reader sees one account before the transfer and the other one after it',
    ...account,
    flows: {
      a: (kit) => sumOfTwoReads(kit),
      b: (kit) => transfer(kit),
    },
  },
  {
    name: 'transfer-in-two-transactions',
    racy: true,
    why: 'between the two statements the money is nowhere, and the reader sees that',
    ...account,
    flows: {
      a: sum,
      b: (kit) => transferBy(kit, kit.ask, kit.wait),
    },
  },
  {
    name: 'charged-twice',
    racy: true,
    why: 'both look before either notes the key, so both charge',
    tables: [
      'CREATE TABLE request (key text PRIMARY KEY)',
      'CREATE TABLE charge ({record}, cents int)',
    ],
    rows: [],
    async flows(kit) {
      if ((await kit.ask(`SELECT key FROM request WHERE key = 'k'`)).length > 0) {
        return kit.answer(200)
      }
      await kit.wait()
      await kit.record(kit.ask, 'charge', { cents: 100 })
      await kit.ask(`INSERT INTO request VALUES ('k') ON CONFLICT DO NOTHING`)
      return kit.answer(200)
    },
  },
  {
    name: 'gone-between-two-reads',
    racy: true,
    why: 'a sees the row, b deletes it, and a reads a property of nothing: a TypeError',
    tables: ['CREATE TABLE named (id int PRIMARY KEY, name text)'],
    rows: [`INSERT INTO named VALUES (1, 'x')`],
    flows: {
      async a(kit) {
        if ((await kit.ask('SELECT id FROM named WHERE id = 1')).length === 0) {
          return kit.answer(404)
        }
        await kit.wait()
        const [row] = await kit.ask('SELECT name FROM named WHERE id = 1')
        return kit.answer(200, { length: (row as { name: string }).name.length })
      },
      async b(kit) {
        await kit.ask('DELETE FROM named WHERE id = 1')
        return kit.answer(200)
      },
    },
  },
  {
    name: 'create-table-if-not-exists',
    racy: true,
    why: 'both see no such table; one fails with an error of the server’s own catalogue',
    tables: [],
    rows: ['DROP TABLE IF EXISTS made'],
    async flows(kit) {
      await kit.wait()
      await kit.ask('CREATE TABLE IF NOT EXISTS made (id int)')
      return kit.answer(200)
    },
  },
  {
    name: 'opposite-orders',
    racy: true,
    why: 'each has locked the row that the other one wants: a deadlock, and that is what is asked for',
    ...account,
    deadlocks: 'fail',
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const [first, second] = kit.who === 'a' ? [1, 2] : [2, 1]
        await ask('UPDATE account SET n = n + 1 WHERE id = $1', first)
        await kit.wait()
        await ask('UPDATE account SET n = n + 1 WHERE id = $1', second)
        return kit.answer(200)
      }),
  },
  {
    name: 'told-before-the-commit',
    racy: true,
    why: 'a says that it is done before its COMMIT, in a transaction that reads row by row; b believes it',
    tables: [
      'CREATE TABLE work (id int PRIMARY KEY, n int)',
      'CREATE TABLE told (id int PRIMARY KEY, n int)',
    ],
    rows: ['INSERT INTO work VALUES (1, 0), (2, 0)', 'INSERT INTO told VALUES (1, 0)'],
    flows: {
      a: (kit) =>
        kit.transaction(async (ask, rowByRow) => {
          await ask('UPDATE work SET n = 1 WHERE id = 1')
          await rowByRow('SELECT id FROM work ORDER BY id')
          await kit.wait()
          await kit.ask('UPDATE told SET n = 1 WHERE id = 1')
          return kit.answer(200)
        }),
      async b(kit) {
        if ((await numberOf(kit.ask('SELECT n FROM told WHERE id = 1'), 'n')) === 0)
          return kit.answer(404)
        return kit.answer(200, {
          made: await numberOf(kit.ask('SELECT n FROM work WHERE id = 1'), 'n'),
        })
      },
    },
  },
]
