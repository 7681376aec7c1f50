/** Races inside one statement: found every time, and what others make of them. */
import { rounds } from '@holdfast/testkit'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { explore } from '../../../src/explore.ts'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow } from '../../../src/run/options.ts'
import { byPriority } from '../../../src/search/policy.ts'
import { Random } from '../../../src/search/random.ts'
import { insertWhereNotExists, openShop, stock } from './shop.ts'

const many = 20
const searches = rounds(many, 6)
const timeout = 180_000

let url: string
beforeAll(async () => {
  url = await openShop()
})

/** Updates the row if there is one, and inserts it otherwise; nothing is unique. */
const upsertByHand: Flow = async ({ pool, flow }) => {
  const { rowCount } = await pool.query(
    `WITH changed AS (UPDATE seats SET who = who WHERE event = 1 RETURNING id)
     INSERT INTO seats (event, who) SELECT 1, $1 WHERE NOT EXISTS (SELECT FROM changed)`,
    [flow],
  )
  return rowCount
}

async function seatsTaken(): Promise<number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ taken: number }>(
      'SELECT count(*)::int AS taken FROM seats WHERE event = 1',
    )
    return rows[0]?.taken ?? 0
  } finally {
    await client.end()
  }
}

/** How often runs with random priorities and one change of them hit it. */
async function byChance(flow: Flow, autocommit: 'split' | 'atomic'): Promise<number> {
  await using runner = await createRunner({
    url,
    seed: stock,
    flows: { ann: flow, bob: flow },
    autocommit,
  })
  const random = new Random(1)
  let hits = 0
  for (let round = 0; round < many; round += 1) {
    await runner.run(byPriority(random, 2, 4, 2))
    if ((await seatsTaken()) > 1) hits += 1
  }
  return hits
}

/** How often two calls at once hit it, with nobody in between. */
async function atOnce(flow: Flow): Promise<number> {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const context = (name: string): Parameters<Flow>[0] =>
    ({ pool, flow: name }) as unknown as Parameters<Flow>[0]
  let hits = 0
  try {
    await Promise.all([pool.query('SELECT 1'), pool.query('SELECT 1')])
    for (let round = 0; round < many; round += 1) {
      await pool.query('TRUNCATE seats')
      await Promise.all([flow(context('ann')), flow(context('bob'))])
      if ((await seatsTaken()) > 1) hits += 1
    }
  } finally {
    await pool.end()
  }
  return hits
}

describe.each([
  ['INSERT … WHERE NOT EXISTS', insertWhereNotExists],
  ['a CTE that updates or inserts', upsertByHand],
])('%s', (name, flow) => {
  test(`found in ${searches} of ${searches} searches`, { timeout }, async () => {
    let found = 0
    for (let round = 1; round <= searches; round += 1) {
      const { verdict } = await explore({
        url,
        seed: stock,
        flows: { ann: flow, bob: flow },
        rng: round,
        onProgress: () => {},
      })
      if (verdict === 'race') found += 1
    }
    expect(found).toBe(searches)
  })

  test('others: runs by random priorities, whole statements, and two calls at once', {
    timeout,
  }, async () => {
    const [split, whole] = [await byChance(flow, 'split'), await byChance(flow, 'atomic')]
    const plain = await atOnce(flow)
    process.stdout.write(
      `${name}: of ${many} runs, by random priorities ${split}; the same with whole statements ${whole}; two calls at once ${plain}\n`,
    )
    // A statement that is not taken apart cannot be overtaken, whatever the order.
    expect(whole).toBe(0)
    expect(split).toBeGreaterThan(0)
  })
})
