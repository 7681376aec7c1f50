/** Settings of a session that change what careless SQL means change nothing of what we mean. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../../src/index.ts'
import { inspect, migrate } from '../../../src/schema/index.ts'
import { testDatabase } from '../../support/database.ts'

const opened: pg.Pool[] = []
afterAll(async () => {
  await Promise.all(opened.map((pool) => pool.end()))
})

/** What everything answers in a session with these settings. */
async function tour(url: string, settings: readonly string[]): Promise<Record<string, unknown>> {
  const options = settings.map((each) => `-c ${each.replaceAll(' ', String.raw`\ `)}`).join(' ')
  const pool = new pg.Pool({ connectionString: url, options, max: 4 })
  opened.push(pool)
  const driver = fromPg(pool)
  const hf = createHoldfast(driver)
  const awkward = String.raw`a\b'"c`
  const daily = hf.quota({ name: 'daily', limit: 10, per: 'day', timeZone: 'America/Santiago' })
  const first = await daily.consume('k', 3, { operationId: 'a', note: { awkward } })
  const refused = await daily.consume('k', 8, { operationId: 'b' })
  const again = await daily.consume('k', 3, { operationId: 'a', note: { awkward } })
  // Some with a feature and a note, some without: an array with nulls in it.
  const mixed = hf.quota({ name: 'mixed', limit: 100, per: 'month' })
  const many = await Promise.all(
    Array.from({ length: 12 }, (_, at) =>
      mixed.consume(`k${at % 3}`, 1, {
        operationId:
          at % 4 === 1 ? `00000000-0000-4000-8000-${String(at).padStart(12, '0')}` : `m${at}`,
        ...(at % 2 === 0 ? { feature: 'f', note: { at } } : {}),
      }),
    ),
  )
  // A UUID is its own id, another text is kept beside one.
  const ids = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? randomUUID() : `text ${at}`))
  await Promise.all(ids.map((operationId) => mixed.consume('ids', 1, { operationId })))
  const told = (await hf.ledger.history('mixed', 'ids')).movements.map((each) => each.operationId)
  const { movements } = await hf.ledger.history('mixed', 'k1')
  const credits = hf.credits({ name: 'credits' })
  await credits.grant('k', 5, { operationId: 'g1', expiresIn: '1 h' })
  await credits.grant('k', 5, { operationId: 'g2', expiresIn: '1 d' })
  const spent = await credits.spend('k', 6, { operationId: 's' })
  const lease = await hf.leases.acquire(awkward)
  await hf.transaction(async (tx) => await lease.guard(tx))
  await lease.release()
  const once = await hf.once(awkward, async () => ({ awkward }))
  const work = hf.work({ queue: `it's a queue` })
  await work.enqueue([{ payload: { awkward } }])
  const [job] = await work.claim(1)
  const { months, ...plan } = JSON.parse(
    String((await pool.query('SELECT holdfast.upkeep_plan(3, 1000)')).rows[0].upkeep_plan),
  ) as Record<string, unknown>
  return {
    quota: [first.ok, refused.ok, again.ok && again.replayed],
    many: many.map(({ ok }) => ok),
    history: movements.map(({ note }) => note ?? null).length,
    ids: told.toSorted().join() === ids.toSorted().join(),
    spent: spent.ok,
    once: once.result,
    job: job?.row.payload,
    kept: (await work.complete(job as NonNullable<typeof job>)).kept.length,
    guard: await hf.guard(lockKey(awkward, awkward), async () => 'in'),
    ahead: plan['ahead'],
    months,
    audit: (await hf.ledger.audit()).found,
    inspect: await inspect(driver),
    locks: (await hf.observe.locks()).sessions.length,
  }
}

let expected: Record<string, unknown>

beforeAll(async () => {
  const { directUrl } = await testDatabase('installed')
  expected = await tour(directUrl, [])
})

describe('S21: the same answers with', () => {
  test('the settings that everybody has', () => {
    expect(expected).toMatchObject({
      inspect: [],
      ahead: 12,
      ids: true,
      once: { awkward: expect.any(String) },
    })
  })

  test('identifiers that were all quoted when the schema was installed', async () => {
    const { directUrl } = await testDatabase()
    const pool = new pg.Pool({
      connectionString: directUrl,
      options: '-c quote_all_identifiers=on',
    })
    opened.push(pool)
    await migrate(fromPg(pool))
    expect(await inspect(fromPg(pool))).toEqual([])
  })

  test.each([
    ['standard_conforming_strings=off'],
    ['quote_all_identifiers=on'],
    ['array_nulls=off'],
    ['transform_null_equals=on'],
    ['datestyle=SQL,DMY', 'timezone=Asia/Kathmandu', 'intervalstyle=sql_standard'],
    ['datestyle=German', 'timezone=Pacific/Auckland', 'intervalstyle=iso_8601'],
    ['bytea_output=escape', 'extra_float_digits=-15', 'xmlbinary=hex'],
    ['row_security=off', 'enable_seqscan=off', 'plan_cache_mode=force_generic_plan'],
    ['default_transaction_isolation=serializable', 'client_min_messages=debug1'],
    ['search_path='],
    ['search_path=public,pg_catalog'],
  ])('%s', async (...settings) => {
    const { directUrl } = await testDatabase('installed')
    expect(await tour(directUrl, settings)).toEqual(expected)
  })
})
