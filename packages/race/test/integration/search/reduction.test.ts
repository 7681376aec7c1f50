/** How few runs it takes on a real server, and how many orders they stand for. */
import { beforeAll, expect, test } from 'vitest'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'
import {
  guardedReserve,
  inTransaction,
  insertWhereNotExists,
  naiveTake,
  openShop,
  stock,
} from './shop.ts'

let url: string
beforeAll(async () => {
  url = await openShop()
})

/** BEGIN, SELECT, INSERT, COMMIT; always inserts, so that every order is feasible. */
const checkAndInsert: Flow = inTransaction(async (client, who) => {
  const { rows } = await client.query('SELECT count(*)::int AS n FROM seats')
  await client.query('INSERT INTO seats (event, who) VALUES (1, $1)', [who])
  return rows.length
})

const people = ['ann', 'bob', 'cid', 'dan']

/** BEGIN, SELECT, UPDATE, COMMIT on one job: the own one, or one for all. */
const workOn = (rowOf: (who: string) => number): Flow =>
  inTransaction(async (client, who) => {
    const id = rowOf(who)
    const { rows } = await client.query('SELECT taken_by FROM jobs WHERE id = $1', [id])
    await client.query('UPDATE jobs SET taken_by = $2 WHERE id = $1', [id, who])
    return rows.length
  })
const ownJob = workOn((who) => 1 + people.indexOf(who))
const sameJob = workOn(() => 1)

// An invariant that always holds and no oracle: the whole space is run although it contains races.
async function classes(
  flow: Flow,
  flows: number,
): Promise<readonly [classes: number, schedules: number, interleavings: bigint]> {
  const names = people.slice(0, flows)
  const { coverage } = await explore({
    url,
    seed: async (database) => {
      await stock(database)
      await database.query('INSERT INTO jobs VALUES (3, NULL)')
    },
    flows: Object.fromEntries(names.map((name) => [name, flow])),
    oracle: false,
    invariant: () => Promise.resolve(),
    budget: { ms: 100_000 },
    onProgress: () => undefined,
  })
  expect(coverage.exhaustive).toBe(true)
  return [coverage.classes, coverage.schedules, coverage.interleavings]
}

test.each([
  ['BEGIN, SELECT, INSERT, COMMIT', 2, 3, 70n, checkAndInsert],
  ['BEGIN, SELECT, INSERT, COMMIT', 3, 19, 34_650n, checkAndInsert],
  ['BEGIN, lock, SELECT, INSERT, COMMIT', 2, 4, 252n, guardedReserve],
  ['BEGIN, lock, SELECT, INSERT, COMMIT', 3, 30, 756_756n, guardedReserve],
  ['INSERT … WHERE NOT EXISTS, alone', 2, 3, 6n, insertWhereNotExists],
  ['BEGIN, SELECT, UPDATE, COMMIT', 2, 6, 70n, naiveTake],
  ['BEGIN, SELECT, UPDATE, COMMIT on the same row', 2, 6, 70n, sameJob],
  ['BEGIN, SELECT, UPDATE, COMMIT on a row of its own', 2, 1, 70n, ownJob],
  ['BEGIN, SELECT, UPDATE, COMMIT on a row of its own', 3, 1, 34_650n, ownJob],
] as const)('%s × %i: %i classes of %i orders', async (_, flows, expected, orders, flow) => {
  const [found, schedules, interleavings] = await classes(flow, flows)
  expect(found).toBe(expected)
  expect(interleavings).toBe(orders)
  // Redundant: the serial orders, and those of three random ones that repeat a class.
  const serial = flows === 2 ? 2 : 6
  expect(schedules - found).toBeLessThanOrEqual(serial + 3)
})

test('BEGIN, SELECT, UPDATE, COMMIT × 3: 96 classes, or a few more by the choice of PostgreSQL', async () => {
  // Of two sessions that wait for one updated row, either may get it.
  const [found, schedules] = await classes(naiveTake, 3)
  expect(found).toBeGreaterThanOrEqual(96)
  expect(schedules).toBeLessThanOrEqual(120)
})
