/** Safe twins of races in a part of a value: what is drawn differs from run to run, and nothing else does. */
import { randomUUID } from 'node:crypto'
import { type Entry, numberOf } from './model.ts'

export const safeValues: readonly Entry[] = [
  {
    name: 'ids-of-two-rows',
    racy: false,
    why: 'each inserts two rows of its own and answers their ids, which begin with 1 in every run',
    tables: [
      'CREATE TABLE cart (id serial PRIMARY KEY, who text)',
      'CREATE TABLE payment (id serial PRIMARY KEY, cart_id int, who text)',
    ],
    rows: ['TRUNCATE TABLE cart RESTART IDENTITY', 'TRUNCATE TABLE payment RESTART IDENTITY'],
    async flows(kit) {
      const insert = 'INSERT INTO cart (who) VALUES ($1) RETURNING id'
      const one = await numberOf(kit.ask(insert, kit.who), 'id')
      await kit.wait()
      const two = await numberOf(kit.ask(insert, kit.who), 'id')
      await kit.ask('INSERT INTO payment (cart_id, who) VALUES ($1, $2)', two, kit.who)
      return { status: 201, ids: [one, two] }
    },
  },
  {
    name: 'thirty-days-added',
    racy: false,
    why: 'the server adds 30 days to what is there, which the seed takes from the clock',
    tables: ['CREATE TABLE plan (id int PRIMARY KEY, until timestamptz NOT NULL)'],
    rows: [`INSERT INTO plan VALUES (1, now() + interval '14 days')`],
    async flows(kit) {
      await kit.wait()
      await kit.ask(`UPDATE plan SET until = until + interval '30 days' WHERE id = 1`)
      return kit.answer(200)
    },
  },
  {
    name: 'one-id-for-one',
    racy: false,
    why: 'whoever comes second is answered the id of the first',
    tables: ['CREATE TABLE customer (email text PRIMARY KEY, code text)'],
    rows: [`INSERT INTO customer VALUES ('x', NULL)`],
    async flows(kit) {
      await kit.wait()
      const [row] = await kit.ask(
        `UPDATE customer SET code = coalesce(code, $1) WHERE email = 'x' RETURNING code`,
        randomUUID(),
      )
      return { status: 200, code: row?.['code'] }
    },
  },
  {
    name: 'a-default-that-reads',
    racy: false,
    why: 'the default of one row is read once, before b or behind it',
    tables: [
      'CREATE TABLE tariff (id int PRIMARY KEY, n int)',
      `CREATE FUNCTION price() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN RETURN (SELECT n FROM tariff WHERE id = 1); END $$`,
      'CREATE TABLE sale (id int PRIMARY KEY, price int DEFAULT price())',
    ],
    rows: ['INSERT INTO tariff VALUES (1, 10)'],
    flows: {
      async a(kit) {
        await kit.wait()
        await kit.ask('INSERT INTO sale (id) VALUES (1)')
        return kit.answer(200)
      },
      async b(kit) {
        await kit.ask('UPDATE tariff SET n = n + 1 WHERE id = 1')
        return kit.answer(200)
      },
    },
  },
]
