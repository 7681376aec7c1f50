import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { expect, test } from 'vitest'
import { fromPg } from '../../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../../packages/holdfast/src/index.ts'
import { migrate } from '../../../packages/holdfast/src/schema/index.ts'
import { rowsOf } from '../../cluster/ask.ts'
import { startPair } from '../../cluster/pair.ts'
import { openSpares } from '../../crew/spares.ts'
import { pairFaults } from '../../nemesis/index.ts'
import { planInTurn } from '../../nemesis/plan.ts'
import { runEpisode } from '../../run/episode.ts'

test('three failovers under load lose nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-failovers-'))
  try {
    await using cluster = await startPair()
    await using spares = openSpares(1)
    const before = cluster.primary.port
    const plan = planInTurn(1, pairFaults, 3)
    const { result } = await runEpisode({ cluster, spares, number: 1, plan, folder })
    // What a refusal may rest on: see the next test.
    expect(result.violations.filter(({ rule }) => rule !== 'refused_for_lost')).toEqual([])
    expect(result.faults).toHaveLength(3)
    expect(cluster.primary.port).not.toBe(before)
  } finally {
    await rm(folder, { recursive: true })
  }
}, 120_000)

test('a refusal may rest on what is lost with the primary, and what was confirmed is there', async () => {
  await using cluster = await startPair()
  const { database } = await cluster.open(async () => undefined)
  const connect = (): pg.Pool => {
    const pool = new pg.Pool({ connectionString: cluster.adminUrl(database), max: 2 })
    return pool.on('error', () => undefined)
  }
  const on = (pool: pg.Pool) =>
    createHoldfast(fromPg(pool), { resolveFor: '100 ms' }).credits({ name: 'wallet' })
  const spend = async (pool: pg.Pool, amount: number, operationId: string): Promise<unknown> => {
    const { ok, lines } = await on(pool).spend('ann', amount, { operationId })
    return { ok, left: lines[0]?.available }
  }
  const before = connect()
  await migrate(fromPg(before))
  await on(before).grant('ann', 10, { operationId: 'opening' })
  cluster.replication.stall()
  const asking = connect()
  const untold = spend(asking, 8, 'untold').catch(() => 'nobody knows')
  await waitUntil('the commit waits for the standby', async () => {
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'SyncRep'`
    return (await rowsOf(cluster.adminUrl('postgres'), waiting, [database])).length > 0 || undefined
  })
  // It gets no new connection: who asks again would wait for the standby like the first time.
  const ended = asking.end()
  await cluster.crash()
  expect(await untold).toBe('nobody knows')
  await ended
  // A read: it does not wait for the standby that hears nothing.
  expect(await spend(before, 5, 'refused')).toEqual({ ok: false, left: 2 })
  await before.end()
  await cluster.failOver(() => undefined)
  const after = connect()
  expect(await spend(after, 5, 'again')).toEqual({ ok: true, left: 5 })
  await after.end()
}, 120_000)
