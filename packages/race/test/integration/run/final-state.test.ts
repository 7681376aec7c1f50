import { randomUUID } from 'node:crypto'
import { withClient } from '@holdfast/testkit'
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Run } from '../../../src/core/model.ts'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow, RunnerOptions } from '../../../src/run/options.ts'
import { Comparison } from '../../../src/search/compare/comparison.ts'
import { script } from '../../support/script.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE users (id serial PRIMARY KEY, name text, at timestamptz DEFAULT now());
      CREATE TABLE orders (id uuid PRIMARY KEY, user_id int REFERENCES users, paid_at timestamp);
      CREATE TABLE lines (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                          order_id uuid REFERENCES orders, amount int);
    `),
  )
})

async function play(flow: Flow, oracle?: RunnerOptions['oracle']): Promise<Run> {
  await using runner = await createRunner({
    url,
    flows: { one: flow },
    oracle,
    seed: async ({ query }) => {
      await query('TRUNCATE users, orders, lines RESTART IDENTITY')
      await query(`INSERT INTO users (name) VALUES ('ann'), ('bob')`)
    },
  })
  return await runner.run(script(['one'], ''))
}

/** An order of two lines for one of the users; `waste` draws keys that are never used. */
const order =
  (user: number, amounts: readonly number[], waste: number = 0): Flow =>
  async ({ pool }) => {
    for (let time = 0; time < waste; time += 1) {
      await pool.query(`SELECT nextval('users_id_seq'), nextval('lines_id_seq')`)
    }
    const { rows } = await pool.query(
      'INSERT INTO orders VALUES ($1, $2, $3) RETURNING id, paid_at AS "paidAt"',
      [randomUUID(), user, new Date()],
    )
    for (const amount of amounts) {
      await pool.query('INSERT INTO lines (order_id, amount) VALUES ($1, $2)', [rows[0].id, amount])
    }
    return rows[0]
  }

test('keys and moments of the run are no difference', async () => {
  const one = await play(order(1, [5, 7]))
  const other = await play(order(1, [7, 5], 3))
  // Of an id that the program made, and answered, the comparison says whether it was drawn.
  expect(other.state).toBe(one.state)
  const comparison = new Comparison(['order'])
  expect(comparison.learn(one, await play(order(1, [5, 7])))).toEqual([])
  expect(comparison.compare(other, one, [0])).toEqual({ alike: 'same' })
  const more = await play(order(1, [7, 6]))
  expect(comparison.compare(more, one, [0])).toEqual({ alike: 'different' })
  expect(one.tables).toEqual([
    {
      name: 'public.lines',
      columns: ['order_id', 'amount'],
      rows: [
        ['→(1, ‹clock›)', '5'],
        ['→(1, ‹clock›)', '7'],
      ],
    },
    { name: 'public.orders', columns: ['user_id'], rows: [['1']] },
    // What the seed wrote keeps its keys.
    {
      name: 'public.users',
      columns: ['id', 'name'],
      rows: [
        ['1', 'ann'],
        ['2', 'bob'],
      ],
    },
  ])
})

test.each([
  ['another user', order(2, [5, 7])],
  ['another amount', order(1, [5, 8])],
  ['a line more', order(1, [5, 7, 7])],
])('%s is one', async (_, flow) => {
  expect((await play(flow)).digest).not.toBe((await play(order(1, [5, 7]))).digest)
})

test('what is ignored is no difference, and what is not looked at neither', async () => {
  for (const oracle of [{ ignore: ['lines.amount'] }, { tables: ['users'] }]) {
    const one = await play(order(1, [5, 7]), oracle)
    expect((await play(order(1, [1, 2]), oracle)).state).toBe(one.state)
  }
  const { state, tables } = await play(order(1, [5, 7]), false)
  expect([state, tables]).toEqual(['', []])
})

test('moments that a person wrote are compared', async () => {
  const on =
    (day: string): Flow =>
    ({ pool }) =>
      pool.query('UPDATE users SET at = $1', [day])
  const one = await play(on('2024-01-01'))
  expect((await play(on('2024-01-01'))).digest).toBe(one.digest)
  expect((await play(on('2024-01-02'))).digest).not.toBe(one.digest)
})
