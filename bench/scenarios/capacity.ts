import { startPostgres } from '@holdfast/testkit'
import type { Pool } from 'pg'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import { openPool } from '../harness/open-pool.ts'
import { type ProcessorSeconds, processorSeconds } from '../harness/processor-seconds.ts'
import { quantile } from '../harness/summary.ts'
import { installLedger } from '../ledger/open-ledger.ts'
import { type Kind, kindsOn, yardstick, yardstickTable } from './capacity-kinds.ts'

const connections = 16
const full = { rounds: 12, sliceMs: 1_500 }
const quick = { rounds: 3, sliceMs: 400 }

/** What one operation cost in one slice. */
interface Cost {
  readonly serverMicros: number
  readonly clientMicros: number
  readonly walBytes: number
  readonly perCommit: number
}

export const capacity: BenchScenario = {
  about: 'what one operation costs the server and the application: processor, WAL, commits',
  method:
    `Server and client on one machine, fsync on, ${connections} connections. Slices of all kinds in turn, over several ` +
    'rounds; of each kind the middle of the rounds. Processor time is counted by the system, of the server with ' +
    'all its sessions and of the process that asks, and given as a multiple of what the yardstick costs the server ' +
    'in the same round, so that it can be carried to another machine: measure the yardstick there. ' +
    `Yardstick: ${yardstick}, prepared. WAL with whole pages after a checkpoint left in.`,
  async run({ quick: short, progress }) {
    const { rounds, sliceMs } = short ? quick : full
    progress('starting PostgreSQL')
    await using server = await startPostgres({
      settings: {
        fsync: 'on',
        shared_buffers: '256MB',
        max_wal_size: '8GB',
        checkpoint_timeout: '30min',
        autovacuum_naptime: '5s',
      },
    })
    const spent = processorSeconds(server.pid)
    if (spent === undefined) throw new Error('this system does not tell what a process has used')
    const url = await server.createDatabase('capacity')
    await installLedger(url)
    const pool = await openPool(url, connections)
    await using _pool = { [Symbol.asyncDispose]: async () => await pool.end() }
    await pool.query(yardstickTable)
    const kinds = await kindsOn(pool)
    const costs = new Map<string, Cost[]>(kinds.map(({ name }) => [name, []]))
    for (const kind of kinds) await costOf(kind, pool, spent, sliceMs)
    for (let round = 0; round < rounds; round += 1) {
      for (const kind of kinds) {
        costs.get(kind.name)?.push(await costOf(kind, pool, spent, sliceMs))
      }
      progress(`capacity: round ${round + 1} of ${rounds}`)
    }
    return { comparisons: [], facts: [table(kinds, costs)] }
  },
}

async function costOf(
  kind: Kind,
  pool: Pool,
  spent: ProcessorSeconds,
  sliceMs: number,
): Promise<Cost> {
  const before = { ...(await standing(pool)), server: spent.server(), client: spent.client() }
  let operations = 0
  const until = performance.now() + sliceMs
  await Promise.all(
    Array.from({ length: kind.workers }, async () => {
      while (performance.now() < until) {
        await kind.operation()
        operations += 1
      }
    }),
  )
  const after = { server: spent.server(), client: spent.client(), ...(await standing(pool)) }
  return {
    serverMicros: ((after.server - before.server) * 1e6) / operations,
    clientMicros: ((after.client - before.client) * 1e6) / operations,
    walBytes: (after.wal - before.wal) / operations,
    perCommit: operations / Math.max(1, after.records - before.records),
  }
}

/** How far the WAL has come, in bytes, and how often it was asked to be made durable. */
async function standing(pool: Pool): Promise<{ wal: number; records: number }> {
  const { rows } = await pool.query<{ wal: string; xid: string }>(
    `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text AS wal,
       pg_snapshot_xmax(pg_current_snapshot())::text AS xid`,
  )
  return { wal: Number(rows[0]?.wal), records: Number(rows[0]?.xid) }
}

function table(kinds: readonly Kind[], costs: ReadonlyMap<string, readonly Cost[]>): FactTable {
  const of = (name: string): readonly Cost[] => costs.get(name) ?? []
  const unit = of(yardstick).map(({ serverMicros }) => serverMicros)
  const middle = (values: readonly number[]): number => quantile(values, 0.5)
  const multiple = (name: string, value: (cost: Cost) => number): string => {
    const ratios = of(name).map((cost, round) => value(cost) / (unit[round] ?? Number.NaN))
    return `${middle(ratios).toFixed(2)} (${quantile(ratios, 0.1).toFixed(2)}–${quantile(ratios, 0.9).toFixed(2)})`
  }
  return {
    title: `Per operation. Processor as a multiple of the yardstick’s on the server, which was ${middle(unit).toFixed(0)} µs here:`,
    columns: [
      'operation',
      'processor, server',
      'processor, application',
      'WAL bytes',
      'operations per commit',
    ],
    rows: kinds.map(({ name }) => [
      name,
      multiple(name, ({ serverMicros }) => serverMicros),
      multiple(name, ({ clientMicros }) => clientMicros),
      middle(of(name).map(({ walBytes }) => walBytes)).toFixed(0),
      middle(of(name).map(({ perCommit }) => perCommit)).toFixed(perCommitDigits(of(name))),
    ]),
  }
}

function perCommitDigits(costs: readonly Cost[]): number {
  return costs.some(({ perCommit }) => perCommit < 2) ? 1 : 0
}
