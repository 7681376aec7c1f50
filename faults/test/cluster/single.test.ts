import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, rowsOf } from '../../cluster/ask.ts'
import type { CutMoment } from '../../cluster/cuttable-port.ts'
import { type SingleCluster, startSingle } from '../../cluster/single.ts'
import type { Doors } from '../../core/model.ts'
import { openSpares } from '../../crew/spares.ts'
import { singleFaults } from '../../nemesis/index.ts'
import { planFor } from '../../nemesis/plan.ts'
import { countLeaks } from '../../run/count-leaks.ts'
import { runEpisode } from '../../run/episode.ts'
import { prepareAll } from '../../run/prepare-all.ts'

let cluster: SingleCluster
let database: string
let doors: Doors

beforeAll(async () => {
  cluster = await startSingle()
  ;({ database, doors } = await cluster.open(prepareAll))
  await rowsOf(cluster.adminUrl(database), 'CREATE TABLE cut (id text PRIMARY KEY)')
})
afterAll(async () => await cluster[Symbol.asyncDispose]())

async function isThere(id: string): Promise<boolean> {
  const rows = await rowsOf(cluster.adminUrl(database), 'SELECT FROM cut WHERE id = $1', [id])
  return rows.length === 1
}

describe.each([
  { moment: 'before', there: false },
  // The pooler may give up on what it has not passed on when it sees the client go.
  { moment: 'after', there: undefined },
  { moment: 'answered', there: true },
] satisfies { moment: CutMoment; there: boolean | undefined }[])(
  'a connection cut $moment',
  ({ moment, there }) => {
    test.each([
      { door: 'direct', aim: 'commit' },
      { door: 'direct', aim: 'autocommit' },
      { door: 'pooled', aim: 'commit' },
      { door: 'pooled', aim: 'autocommit' },
    ] as const)('in $aim at the $door door', async ({ door, aim }) => {
      const id = `${moment}-${aim}-${door}`
      const port = cluster.ports[door === 'direct' ? 0 : 1]
      const client = new Client({ connectionString: doors[door] })
      client.on('error', () => undefined)
      await client.connect()
      if (aim === 'commit') await client.query('BEGIN')
      const insert = { text: 'INSERT INTO cut (id) VALUES ($1)', values: [id] }
      if (aim === 'commit') await client.query(insert)
      const cut = port?.cutCommits({ aim, moment, count: 1, limitMs: 5_000 })
      const told = aim === 'commit' ? client.query('COMMIT') : client.query(insert)
      await expect(told).rejects.toThrow(/ECONNRESET|terminated/)
      expect(await cut).toBe(1)
      if (there !== undefined) expect(await isThere(id)).toBe(there)
    })
  },
)

test('leaks of every kind are seen', async () => {
  const none = async (): Promise<string[]> => {
    const found = await countLeaks(cluster, database, doors, [], 500)
    return found.map(({ what }) => what)
  }
  expect(await none()).toEqual([])

  const left = new Client({ connectionString: doors.direct })
  await left.connect()
  await left.query('BEGIN; LOCK TABLE cut')
  await ask(doors.pooled, async (client) => {
    await client.query(`SET statement_timeout = '7s'`)
    await client.query('SELECT pg_advisory_lock(7)')
    await client.query('PREPARE forgotten AS SELECT 1')
    await client.query('LISTEN forgotten')
  })
  await ask(cluster.adminUrl(database), async (client) => {
    await client.query(`SELECT pg_create_physical_replication_slot('forgotten')`)
    await client.query(
      `INSERT INTO holdfast.account (bucket, id, book, key, scope)
       SELECT 1, id, 'b', 'k', 's' FROM (SELECT gen_random_uuid() AS id) a`,
    )
    await client.query(
      `INSERT INTO holdfast.hold (bucket, id, account, amount, expires_at, made_seq, operation_id)
       SELECT 1, gen_random_uuid(), id, 5, now() + interval '1 h', 1, 'nobody' FROM holdfast.account WHERE book = 'b'`,
    )
  })
  const seen = (await none()).join('\n')
  expect(seen).toMatch(/1 connections of applications are open at direct/)
  expect(seen).toMatch(/a connection that nobody has: .*idle in transaction/)
  expect(seen).toMatch(/locks: .*AccessExclusiveLock/)
  expect(seen).toMatch(/setting statement_timeout = 7000/)
  expect(seen).toMatch(/session lock 7/)
  expect(seen).toMatch(/prepared statement/)
  expect(seen).toMatch(/listens to forgotten/)
  expect(seen).toMatch(/slots: forgotten/)
  expect(seen).toMatch(/of nobody is in no history/)
  await left.end()
  await rowsOf(cluster.adminUrl(database), `SELECT pg_drop_replication_slot('forgotten')`)
}, 60_000)

test('an episode with faults ends with everything healed, checked and counted', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-episode-'))
  try {
    await using spares = openSpares(1)
    // Repeats for ever what this seed makes: kill_backend, cut_autocommit and another cut.
    const plan = planFor(1_025_468_418, singleFaults)
    const { result } = await runEpisode({ cluster, spares, number: 1, plan, folder })
    expect(result.violations).toEqual([])
    expect(result.faults.length + result.missed.length).toBe(plan.lanes.length)
    expect(result.outcomes['quota']?.ok).toBeGreaterThan(0)
  } finally {
    await rm(folder, { recursive: true })
  }
}, 90_000)

test('whatever was broken, healing brings it back', async () => {
  process.kill(cluster.primary.pid, 'SIGSTOP')
  process.kill(cluster.pooler.pid, 'SIGKILL')
  for (const port of cluster.ports) port.stall()
  await cluster.heal()
  expect(await rowsOf(doors.pooled, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  await cluster.primary.kill()
  await cluster.heal()
  expect(await rowsOf(doors.direct, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
}, 60_000)
