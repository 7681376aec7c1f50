/**
 * The search against every order of the same steps on the same server, with autocommit statements taken
 * apart: what PostgreSQL's isolationtester cannot do. `RACE_SEEDS=1-100` draws more flows.
 */
import { sample, withClient } from '@holdfast/testkit'
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { type Dependent, dependent, dependentBy, rules } from '../../../src/core/footprint.ts'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow } from '../../../src/run/options.ts'
import { Random } from '../../../src/search/random.ts'
import { enumerate } from '../../../src/search/classes/systematic.ts'
import { everyInterleaving } from '../../unit/search/scripts.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE keyed (id int PRIMARY KEY, value int NOT NULL);
      CREATE TABLE plain (id int, value int NOT NULL);
      CREATE TABLE log (id serial PRIMARY KEY, value int NOT NULL);
    `),
  )
})

const statements = [
  'SELECT count(*)::int AS n FROM keyed',
  'SELECT value FROM keyed WHERE id = 1',
  'SELECT sum(value)::int AS n FROM plain',
  'UPDATE keyed SET value = value + 1 WHERE id = 1 RETURNING value',
  'UPDATE keyed SET value = (SELECT coalesce(sum(value), 0) FROM plain) WHERE id = 1',
  'UPDATE plain SET value = value * 2 WHERE value < 20',
  'DELETE FROM plain WHERE id = 1',
  'INSERT INTO plain SELECT 3, 30 WHERE NOT EXISTS (SELECT FROM plain WHERE id = 3)',
  'INSERT INTO keyed VALUES (3, 30) ON CONFLICT DO NOTHING RETURNING value',
  'INSERT INTO keyed VALUES (3, 30) ON CONFLICT (id) DO UPDATE SET value = keyed.value + 1',
  'INSERT INTO keyed VALUES (3, 30)',
  'INSERT INTO log (value) SELECT count(*) FROM plain',
  'WITH moved AS (DELETE FROM plain WHERE id = 1 RETURNING value) INSERT INTO log (value) SELECT value FROM moved',
  'WITH tried AS (UPDATE keyed SET value = value + 1 WHERE id = 3 RETURNING id) INSERT INTO keyed SELECT 3, 1 WHERE NOT EXISTS (SELECT FROM tried)',
  'SELECT id FROM keyed WHERE id = 1 FOR UPDATE SKIP LOCKED',
  'SELECT pg_try_advisory_xact_lock(1) AS got',
]

/** One statement or two on their own, or two in a transaction. */
function draw(random: Random): { readonly texts: readonly string[]; readonly flow: Flow } {
  const shape = random.pick(['one', 'two', 'transaction'] as const)
  const drawn = [random.pick(statements), random.pick(statements)]
  const texts = shape === 'one' ? drawn.slice(1) : drawn
  const flow: Flow = async ({ pool }) => {
    const client = await pool.connect()
    const answers: unknown[] = []
    try {
      if (shape === 'transaction') await client.query('BEGIN')
      for (const text of texts) answers.push((await client.query(text)).rows)
      if (shape === 'transaction') await client.query('COMMIT')
      return answers
    } catch (error) {
      if (shape === 'transaction') await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }
  return { texts: [shape, ...texts], flow }
}

const [first = 1, last = 5] = (process.env['RACE_SEEDS']?.split('-') ?? []).map(Number)
const seeds = Array.from({ length: last - first + 1 }, (_, place) => first + place)

/** What the search misses of what every order gives, as the turns of the flows. */
async function missed(seed: number, relation: Dependent): Promise<readonly string[]> {
  const random = new Random(seed)
  const [one, other] = [draw(random), draw(random)]
  await using runner = await createRunner({
    url,
    flows: { one: one.flow, other: other.flow },
    seed: async ({ query }) => {
      await query('TRUNCATE keyed, plain, log RESTART IDENTITY')
      await query('INSERT INTO keyed VALUES (1, 10), (2, 20)')
      await query('INSERT INTO plain VALUES (1, 10), (2, 20)')
    },
  })
  const every = (await everyInterleaving(runner, 500)) ?? []
  const found = new Set<string>()
  const runs = enumerate(runner, { dependent: relation })
  for (;;) {
    const next = await runs.next()
    if (next.done) {
      if (relation === dependent)
        expect(next.value).toMatchObject({ exhaustive: true, divergences: [] })
      break
    }
    found.add(next.value.digest)
  }
  return every
    .filter(({ digest }) => !found.has(digest))
    .map(
      ({ steps }) =>
        `${steps.map(({ flow }) => flow).join('')} of ${one.texts.join()} | ${other.texts.join()}`,
    )
}

test.each(sample(seeds))(
  'flows of seed %i: every result is found',
  { timeout: 120_000 },
  async (seed) => {
    expect(await missed(seed, dependent)).toEqual([])
  },
)

test.each([
  ['exclusion', 22],
  ['visibility', 4],
])('the control: without the rule of %s a result of seed %i is missed', async (name, seed) => {
  const relation = dependentBy(rules.filter((rule) => rule.name !== name))
  expect(await missed(seed, relation)).not.toEqual([])
})
