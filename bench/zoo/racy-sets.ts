/** Races on what is not there yet, and on rules about several rows. */
import { leave, register } from './deeds.ts'
import { onCall, uploadCount, uploads } from './grounds.ts'
import { type Entry, type Kit, numberOf } from './model.ts'

const users = {
  tables: ['CREATE TABLE users ({record}, email text, who text)'],
  rows: [],
}

async function upload(kit: Kit): Promise<unknown> {
  if ((await numberOf(kit.ask(uploadCount))) >= 1) {
    return kit.answer(409)
  }
  await kit.wait()
  await kit.record(kit.ask, 'upload', { owner: 1, who: kit.who })
  return kit.answer(201)
}

export const racySets: readonly Entry[] = [
  {
    name: 'check-then-insert',
    racy: true,
    why: 'no constraint: both see no such e-mail and insert it',
    ...users,
    flows: (kit) => register(kit),
  },
  {
    name: 'check-then-insert-repeatable-read',
    racy: true,
    why: 'REPEATABLE READ does not see what the other inserts, and no row is updated by both',
    ...users,
    flows: (kit) => kit.transaction((ask) => register(kit, ask), 'REPEATABLE READ'),
  },
  {
    name: 'insert-where-not-exists',
    racy: true,
    why: 'one statement, and still each looks at what was committed when it began',
    tables: ['CREATE TABLE member (email text, who text)'],
    rows: [],
    async flows(kit) {
      await kit.wait()
      const rows = await kit.ask(
        `INSERT INTO member SELECT 'x', $1::text WHERE NOT EXISTS (SELECT FROM member WHERE email = 'x')
         RETURNING who`,
        kit.who,
      )
      return kit.answer(rows.length === 1 ? 201 : 409)
    },
  },
  {
    name: 'upsert-by-hand',
    racy: true,
    why: 'both update nothing and then insert; nothing keeps the second row out',
    tables: ['CREATE TABLE setting (name text, value text)'],
    rows: [],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const rows = await ask(
          `UPDATE setting SET value = $1 WHERE name = 'x' RETURNING name`,
          kit.who,
        )
        await kit.wait()
        if (rows.length === 0) await ask(`INSERT INTO setting VALUES ('x', $1)`, kit.who)
        return kit.answer(200)
      }),
  },
  {
    name: 'number-by-max',
    racy: true,
    why: 'both read the same highest number; no constraint, so it is given twice',
    tables: ['CREATE TABLE invoice (number int, who text)'],
    rows: [`INSERT INTO invoice VALUES (7, 'z')`],
    async flows(kit) {
      const n = await numberOf(kit.ask('SELECT max(number) + 1 AS n FROM invoice'))
      await kit.wait()
      await kit.ask('INSERT INTO invoice VALUES ($1, $2)', n, kit.who)
      return kit.answer(201)
    },
  },
  {
    name: 'gap-in-a-natural-key',
    racy: true,
    why: 'whoever meets a taken seat leaves one free: no serial order leaves a gap',
    tables: ['CREATE TABLE seat (seat int PRIMARY KEY, who text)'],
    rows: [],
    async flows(kit) {
      const first = await numberOf(kit.ask('SELECT coalesce(max(seat), 0) + 1 AS n FROM seat'))
      await kit.wait()
      for (let seat = first; ; seat += 2) {
        const rows = await kit.ask(
          'INSERT INTO seat VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING seat',
          seat,
          kit.who,
        )
        if (rows.length === 1) return kit.answer(201)
      }
    },
  },
  {
    name: 'limit-by-count',
    racy: true,
    why: 'both count none and insert; the limit is one',
    ...uploads,
    flows: upload,
  },
  {
    name: 'limit-by-count-of-three',
    racy: true,
    why: 'the same with three at once',
    ...uploads,
    flows: { a: upload, b: upload, c: upload },
  },
  {
    name: 'lock-of-the-wrong-row',
    racy: true,
    why: 'each locks its own row, and the limit is over all of them',
    tables: [
      'CREATE TABLE owner (name text PRIMARY KEY)',
      'CREATE TABLE upload ({record}, who text)',
    ],
    rows: [`INSERT INTO owner VALUES ('a'), ('b')`],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await ask('SELECT name FROM owner WHERE name = $1 FOR UPDATE', kit.who)
        const n = await numberOf(ask('SELECT count(*)::int AS n FROM upload'))
        if (n >= 1) return kit.answer(409)
        await kit.wait()
        await kit.record(ask, 'upload', { who: kit.who })
        return kit.answer(201)
      }),
  },
  {
    name: 'write-skew',
    racy: true,
    why: 'each sees two on call and takes itself off: nobody is left',
    ...onCall,
    flows: (kit) => leave(kit, 'READ COMMITTED'),
  },
  {
    name: 'write-skew-repeatable-read',
    racy: true,
    why: 'they update different rows, so REPEATABLE READ lets both commit',
    ...onCall,
    flows: (kit) => leave(kit, 'REPEATABLE READ'),
  },
  {
    name: 'serializable-on-one-side',
    racy: true,
    why: 'b is not SERIALIZABLE, so what it reads and writes is not watched',
    ...onCall,
    flows: (kit) => leave(kit, kit.who === 'a' ? 'SERIALIZABLE' : 'REPEATABLE READ'),
  },
  {
    name: 'two-tables-one-rule',
    racy: true,
    why: 'the rule is about the sum of both tables; each changes one of them',
    tables: [
      'CREATE TABLE savings (id int PRIMARY KEY, n int NOT NULL)',
      'CREATE TABLE current (id int PRIMARY KEY, n int NOT NULL)',
    ],
    rows: ['INSERT INTO savings VALUES (1, 50)', 'INSERT INTO current VALUES (1, 50)'],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const savings = await numberOf(ask('SELECT n FROM savings WHERE id = 1'))
        const current = await numberOf(ask('SELECT n FROM current WHERE id = 1'))
        if (savings + current < 80) return kit.answer(409)
        await kit.wait()
        if (kit.who === 'a') await ask('UPDATE savings SET n = n - 80 WHERE id = 1')
        else await ask('UPDATE current SET n = n - 80 WHERE id = 1')
        return kit.answer(200)
      }),
  },
  {
    name: 'delete-then-check',
    racy: true,
    why: 'each deletes itself and still sees the other one: no administrator is left',
    tables: ['CREATE TABLE admin (name text PRIMARY KEY)'],
    rows: [`INSERT INTO admin VALUES ('a'), ('b')`],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await ask('DELETE FROM admin WHERE name = $1', kit.who)
        await kit.wait()
        const left = await numberOf(ask('SELECT count(*)::int AS n FROM admin'))
        if (left === 0) throw new Error('the last one stays')
        return kit.answer(200)
      }),
  },
  {
    name: 'orphan-without-foreign-key',
    racy: true,
    why: 'a sees the parent, b sees no child; then a child without a parent is left',
    tables: [
      'CREATE TABLE parent (id int PRIMARY KEY)',
      'CREATE TABLE child ({record}, parent int)',
    ],
    rows: ['INSERT INTO parent VALUES (1)'],
    flows: {
      async a(kit) {
        if ((await kit.ask('SELECT id FROM parent WHERE id = 1')).length === 0) {
          return kit.answer(404)
        }
        await kit.wait()
        await kit.record(kit.ask, 'child', { parent: 1 })
        return kit.answer(201)
      },
      async b(kit) {
        if ((await numberOf(kit.ask('SELECT count(*)::int AS n FROM child'))) > 0) {
          return kit.answer(409)
        }
        await kit.wait()
        await kit.ask('DELETE FROM parent WHERE id = 1')
        return kit.answer(200)
      },
    },
  },
]
