import { join } from 'node:path'
import { waitUntil } from '@holdfast/testkit'
import { Pool } from 'pg'
import { checkFates } from '../checks/check-fates.ts'
import { Findings } from '../checks/findings.ts'
import { type PairCluster, startPair } from '../cluster/pair.ts'
import { rowsOf } from '../cluster/ask.ts'
import type { Outcome, Violation } from '../core/model.ts'
import { recorderOf } from '../crew/recorder.ts'
import { openHistory } from '../history/open-history.ts'
import { operationsOf } from '../history/operations-of.ts'
import { readHistory } from '../history/read-history.ts'
import { cancelSyncWaits } from '../nemesis/failover-faults.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'

/** Writes a row and resolves when it was told that it is there. */
type Write = (pool: Pool, id: string) => Promise<void>

export interface Ending {
  readonly violations: readonly Violation[]
  /** What the writers were told about the commits that were cancelled. */
  readonly told: readonly Outcome[]
}

const insert = 'INSERT INTO note (id) VALUES ($1)'
const writers = 4

/** A client that reads the answer and not the warning beside it. */
const bare: Write = async (pool, id) => void (await pool.query(insert, [id]))

const throughHoldfast: Write = async (pool, id) => {
  const hf = createHoldfast(fromPg(pool))
  await hf.tx.run(async (tx) => void (await tx.query(insert, [id])))
}

/**
 * Commits whose wait for the standby is cancelled are answered with COMMIT and a warning. Then the primary
 * is lost. Who does not look at the warning has been told something that is not so; through Holdfast the
 * same must be an unknown outcome.
 */
export async function cancelledSync(
  folder: string,
): Promise<{ readonly bare: Ending; readonly holdfast: Ending }> {
  await using cluster = await startPair()
  const place = join(folder, 'cancelled_sync')
  return {
    bare: await loseCancelled(cluster, bare, join(place, 'bare')),
    holdfast: await loseCancelled(cluster, throughHoldfast, join(place, 'holdfast')),
  }
}

async function loseCancelled(cluster: PairCluster, write: Write, folder: string): Promise<Ending> {
  const { database, doors } = await cluster.open(prepareNotes)
  const pool = new Pool({ connectionString: doors.direct, max: writers })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  const work = 'cancelled_sync'
  try {
    using history = openHistory(folder, 'writers')
    const recorder = recorderOf({
      workload: work,
      process: 'writers',
      history,
      stopping: new AbortController().signal,
      ended: () => undefined,
      trouble: () => undefined,
    })
    const writeAll = async (round: string): Promise<unknown> =>
      await Promise.all(
        Array.from({ length: writers }, async (_, writer) => {
          const id = `${round}-${writer}`
          await recorder.attempt({ operation: 'write', key: id, id }, async () => {
            await write(pool, id)
            return { outcome: 'ok' }
          })
        }),
      )
    await writeAll('kept')
    cluster.replication.stall()
    const written = writeAll('cancelled')
    await waitUntil('all commits wait for the standby', async () => {
      const rows = await rowsOf(
        cluster.adminUrl('postgres'),
        `SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'SyncRep'`,
        [database],
      )
      return rows.length === writers ? true : undefined
    })
    await cancelSyncWaits(cluster, database)
    await written
    await cluster.failOver(() => undefined)
    const rows = await rowsOf<{ id: string }>(cluster.adminUrl(database), 'SELECT id FROM note')
    const findings = new Findings(work)
    const times = new Map(rows.map(({ id }) => [id, 1]))
    const operations = operationsOf(readHistory(folder).events)
    checkFates(findings, operations, times)
    const cancelled = operations.filter(({ id }) => id?.startsWith('cancelled') === true)
    return { violations: findings.violations, told: cancelled.map(({ outcome }) => outcome) }
  } finally {
    await pool.end()
    await cluster.drop(database)
  }
}

async function prepareNotes(adminUrl: string): Promise<void> {
  await rowsOf(adminUrl, 'CREATE TABLE note (id text PRIMARY KEY)')
}
