/**
 * The short function for one debit in a transaction of the caller's (`apply_debit`): the same answers and rows as by
 * `apply_one`, nothing where the schema is older, and prepared only where the user and the connection allow it.
 */
import { waitUntilBlocked } from '@holdfast/testkit'
import fc from 'fast-check'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { fromPg, type PgOptions } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { Quota } from '../../../src/quota/index.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { ownFiles } from '../../../src/schema/schema-files.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'
import { weakened } from '../../support/weakened-files.ts'

const fixture = ledgerFixture()
const seed = Number(process.env['HOLDFAST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const numRuns = Number(process.env['HOLDFAST_RUNS'] ?? 40)

type TestQuota = Quota<pg.PoolClient, number>

beforeAll(async () => {
  const { repeatables, ...others } = ownFiles()
  const older = {
    ...others,
    repeatables: repeatables.filter(({ name }) => name !== 'app/apply_debit'),
  }
  await migrateFiles(fromPg(fixture.observer), older, { schema: 'older' })
})

/** Of a book of its own. With `known`, what there is in the schema has been found out. */
async function quotaOf(
  schema: string,
  limit = 100,
  options: PgOptions = {},
  pool = fixture.pool,
): Promise<TestQuota> {
  const hf = createHoldfast(fromPg(pool, options), { schema })
  const quota = hf.quota({ name: fresh(), limit, per: 'lifetime' })
  await quota.consume('a', 1, { operationId: fresh() })
  return quota
}

/** What one call sends on the caller's connection. */
async function sentBy(quota: TestQuota, client: pg.PoolClient, key = 'a'): Promise<string[]> {
  const { stream } = (
    client as unknown as { connection: { stream: { write(bytes: Buffer): boolean } } }
  ).connection
  const write = stream.write.bind(stream)
  const sent: string[] = []
  stream.write = (bytes) => {
    sent.push(String(bytes))
    return write(bytes)
  }
  try {
    expect(await quota.consume(client, key, 1, { operationId: fresh() })).toMatchObject({
      ok: true,
    })
  } finally {
    stream.write = write
  }
  return sent
}

interface Asked {
  readonly key: string
  readonly cost: number
  readonly id: number
}

const asked = fc.record({
  key: fc.constantFrom('a', 'a', 'b', 'new'),
  cost: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constantFrom(2 ** 32 + 5, 2 ** 53 - 1)),
  id: fc.integer({ min: 1, max: 30 }),
})
const histories = fc.array(asked, { maxLength: 25 })
const limits = fc.constantFrom(20, 60, 2 ** 34, Number.MAX_SAFE_INTEGER)

async function played(history: readonly Asked[], limit: number, schema: string): Promise<unknown> {
  const quota = await quotaOf(schema, limit)
  const client = await fixture.pool.connect()
  const verdicts: object[] = []
  try {
    await client.query('BEGIN')
    for (const { key, cost, id } of history) {
      const operationId = `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`
      const verdict = await quota.consume(client, key, cost, { operationId })
      const lines = verdict.lines.map((line) => ({ ...line, book: undefined }))
      verdicts.push({ ...verdict, at: undefined, book: undefined, lines })
    }
    await client.query('COMMIT')
  } finally {
    client.release(true)
  }
  const { rows } = await fixture.observer.query(
    `SELECT a.key, to_jsonb(m) - ARRAY['account', 'at', 'bucket'] AS movement, o.id, o.line, o.kind, o.amount,
       o.owner = a.id AS own, o.at = m.at AS same_time, b.seq AS last, b.debited, b.allowance, b.moved_at = m.at AS newest
     FROM ${schema}.account a
     JOIN ${schema}.balance b ON b.bucket = a.bucket AND b.account = a.id
     JOIN ${schema}.movement m ON m.bucket = a.bucket AND m.account = a.id
     JOIN ${schema}.operation o ON o.bucket = m.bucket AND o.account = m.account AND o.seq = m.seq
     WHERE a.book = $1 AND o.id::text LIKE '00000000%' ORDER BY a.key, m.seq`,
    [quota.name],
  )
  return { verdicts, rows }
}

describe(`histories of seed ${seed}`, () => {
  test('by the short function and by the whole: the same answers and rows', async () => {
    await fc.assert(
      fc.asyncProperty(histories, limits, async (history, limit) => {
        expect(await played(history, limit, 'holdfast')).toEqual(
          await played(history, limit, 'older'),
        )
      }),
      { seed, numRuns },
    )
  })

  test.each([
    ['the look at the balance', />= amount\s/, 'IS NOT NULL '],
    ['the look at known ids', /AND NOT EXISTS \([^)]*\)/, ''],
  ])('control: without %s they differ', async (name, piece, instead) => {
    const schema = `without ${name}`.replaceAll(' ', '_')
    await migrateFiles(fromPg(fixture.observer), weakened('apply_debit', piece, instead), {
      schema,
    })
    const outcome = await fc.check(
      fc.asyncProperty(histories, limits, async (history, limit) => {
        expect(await played(history, limit, schema)).toEqual(await played(history, limit, 'older'))
      }),
      { seed, numRuns: 100, endOnFailure: true },
    )
    expect(outcome.failed).toBe(true)
  })
})

test('where the function is, it is called; on an older schema nobody tries', async () => {
  const client = await callerTransaction(fixture)
  expect((await sentBy(await quotaOf('holdfast'), client)).join()).toContain('.apply_debit(')
  expect((await sentBy(await quotaOf('older'), client)).join()).toContain('.apply_one(')
})

test('what is more than a debit goes the whole way', async () => {
  const quota = await quotaOf('holdfast')
  const client = await callerTransaction(fixture)
  for (const more of [{ note: { why: 'x' } }, { scope: 'tenant' }, { upTo: true }]) {
    const operationId = fresh()
    expect(await quota.consume(client, 'a', 1, { operationId, ...more })).toMatchObject({
      ok: true,
    })
  }
  expect(await quota.consume(client, 'a', 1, { operationId: 'no uuid' })).toMatchObject({
    ok: true,
  })
})

describe('two who take the last at once', () => {
  const taken = async (schema: string): Promise<boolean[]> => {
    const quota = await quotaOf(schema, 2)
    const [one, other] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    const first = await quota.consume(one, 'a', 1, { operationId: fresh() })
    const pid = await pidOf(other)
    const waiting = quota.consume(other, 'a', 1, { operationId: fresh() })
    await waitUntilBlocked(fixture.observer, pid)
    await one.query('COMMIT')
    return [first.ok, (await waiting).ok]
  }

  test('one gets it', async () => {
    expect(await taken('holdfast')).toEqual([true, false])
  })

  test('and the same id at once is one operation', async () => {
    const quota = await quotaOf('holdfast')
    const [one, other] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    const operationId = fresh()
    const first = await quota.consume(one, 'a', 1, { operationId })
    const pid = await pidOf(other)
    const waiting = quota.consume(other, 'a', 1, { operationId })
    await waitUntilBlocked(fixture.observer, pid)
    await one.query('COMMIT')
    expect(await waiting).toEqual({ ...first, replayed: true })
  })

  test('control: without the number of the account both get that', async () => {
    const schema = 'without_number'
    const files = weakened('apply_debit', /AND x\.seq = \(SELECT[^)]*\)/, '')
    await migrateFiles(fromPg(fixture.observer), files, { schema })
    const quota = await quotaOf(schema)
    const [one, other] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    const operationId = fresh()
    await quota.consume(one, 'a', 1, { operationId })
    const pid = await pidOf(other)
    const settled = Promise.allSettled([quota.consume(other, 'a', 1, { operationId })])
    await waitUntilBlocked(fixture.observer, pid)
    await one.query('COMMIT')
    expect(await settled).toMatchObject([{ status: 'rejected', reason: { code: '23505' } }])
  })
})

describe('prepared', () => {
  const names = async (client: pg.PoolClient): Promise<string[]> =>
    (await client.query<{ name: string }>('SELECT name FROM pg_prepared_statements')).rows.map(
      ({ name }) => name,
    )
  const used = async (options: PgOptions, claimed?: number): Promise<string[]> => {
    const pool = new pg.Pool({ connectionString: fixture.database.directUrl, max: 2 })
    // As a pooler does, which makes one up.
    if (claimed !== undefined) {
      pool.on('connect', (made) => void Object.assign(made, { processID: claimed }))
    }
    const quota = await quotaOf('holdfast', 100, options, pool)
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      for (let call = 0; call < 3; call += 1) await sentBy(quota, client)
      return (await names(client)).filter((name) => name.includes('debit_joined'))
    } finally {
      client.release(true)
      await pool.end()
    }
  }

  test('by name where the user says so and the connection leads straight to the server', async () => {
    expect(await used({ prepareJoined: true })).toHaveLength(1)
  })

  test.each<[string, PgOptions, number?]>([
    ['without being asked', {}],
    ['where nothing may be prepared', { prepareJoined: true, prepare: 'never' }],
    ['through a pooler', { prepareJoined: true }, 1],
    ['through a pooler that was not asked outside', { prepareJoined: true, prepare: 'tracked' }, 1],
  ])('not %s', async (_, options, pid) => {
    expect(await used(options, pid)).toEqual([])
  })

  test('a name that the server has forgotten fails once', async () => {
    const quota = await quotaOf('holdfast', 100, { prepareJoined: true })
    const client = await callerTransaction(fixture)
    for (let call = 0; call < 2; call += 1) await sentBy(quota, client)
    await client.query('DEALLOCATE ALL')
    await expect(sentBy(quota, client)).rejects.toMatchObject({ code: '26000' })
    await client.query('ROLLBACK')
    await client.query('BEGIN')
    for (let call = 0; call < 3; call += 1) await sentBy(quota, client)
  })
})

test('no setting is left changed', async () => {
  const client = await callerTransaction(fixture)
  const settings = async (): Promise<unknown> =>
    (await client.query('SELECT name, setting FROM pg_settings ORDER BY name')).rows
  const quota = await quotaOf('holdfast', 100, { prepareJoined: true })
  // Which has settings of its own, as soon as it is loaded.
  await client.query('DO $$ BEGIN END $$')
  const before = await settings()
  for (let call = 0; call < 3; call += 1) await sentBy(quota, client)
  expect(await settings()).toEqual(before)
})

test('and nothing is broken', async () => {
  expect(await brokenInvariants(fixture.observer)).toEqual([])
})
