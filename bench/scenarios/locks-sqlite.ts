import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type BetterSqlite3, betterSqlite3 } from '@holdfast/testkit'
import { fromBetterSqlite3 } from '../../packages/holdfast/src/drivers/better-sqlite3.ts'
import { fromNodeSqlite } from '../../packages/holdfast/src/drivers/node-sqlite.ts'
import { createHoldfast, lockKey, type SqliteDriver } from '../../packages/holdfast/src/sqlite.ts'
import type { BenchResult } from '../harness/bench-scenario.ts'
import { type Comparison, compare, type Contest, type Effort } from '../harness/compare.ts'
import { meterOf } from '../harness/meter.ts'

const keys = 1_000

/** What connections of both clients have in common. */
interface Handle {
  exec(text: string): unknown
  prepare(text: string): { run(...values: unknown[]): unknown }
  close(): unknown
}

interface Client {
  readonly name: string
  open(path: string): Handle
  driver(open: () => Handle): SqliteDriver<Handle>
}

function installed(): readonly Client[] {
  const node: Client = {
    name: 'node:sqlite',
    open: (path) => new DatabaseSync(path) as unknown as Handle,
    driver: (open) =>
      fromNodeSqlite(open as unknown as () => DatabaseSync) as unknown as SqliteDriver<Handle>,
  }
  const Database = betterSqlite3()
  if (Database === undefined) return [node]
  return [
    node,
    {
      name: 'better-sqlite3',
      open: (path) => new Database(path) as unknown as Handle,
      driver: (open) =>
        fromBetterSqlite3(
          open as unknown as () => BetterSqlite3,
        ) as unknown as SqliteDriver<Handle>,
    },
  ]
}

const anyKey = (): number => Math.floor(Math.random() * keys)

const write = (db: Handle): unknown =>
  db.prepare('UPDATE item SET n = n + 1 WHERE id = ?').run(anyKey())

/** What a guard costs on SQLite. */
export async function sqliteLocks(
  effort: Effort,
  progress: (text: string) => void,
): Promise<BenchResult> {
  const comparisons: Comparison[] = []
  for (const client of installed()) {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-sqlite-'))
    const open = (): Handle => client.open(join(folder, 'bench.db'))
    const db = open()
    db.exec('PRAGMA journal_mode = WAL; CREATE TABLE item (id INTEGER PRIMARY KEY, n INTEGER)')
    for (let id = 0; id < keys; id += 1) db.exec(`INSERT INTO item VALUES (${id}, 0)`)
    const driver = client.driver(open)
    const hf = createHoldfast(driver)
    const byHand = async (body: (db: Handle) => unknown): Promise<void> => {
      db.exec('BEGIN IMMEDIATE')
      await body(db)
      db.exec('COMMIT')
    }
    const guarded = async (body: (tx: Handle) => unknown): Promise<unknown> =>
      await hf.guard(lockKey('bench', anyKey()), async (tx) => {
        await body(tx)
      })
    const suffix = client.name === 'node:sqlite' ? '' : '_better_sqlite3'
    const contest = (name: string, body: (db: Handle) => unknown, bar?: number): Contest => ({
      name: `${name}${suffix}`,
      workers: 1,
      ...(bar === undefined ? {} : { bar }),
      measured: { label: `guard, ${client.name}`, operation: () => guarded(body) },
      baseline: { label: 'BEGIN IMMEDIATE, the same, COMMIT', operation: () => byHand(body) },
    })
    try {
      for (const each of [
        contest('guard_vs_bare', write, 0.9),
        contest('guard_vs_bare_empty', () => undefined),
      ])
        comparisons.push(...(await compare(each, effort, progress, meterOf({}))))
    } finally {
      driver.close()
      db.close()
      rmSync(folder, { recursive: true })
    }
  }
  return { comparisons, method }
}

const method =
  'One process, one operation under way, WAL, synchronous = FULL as by default: a COMMIT of a write waits for the disk. ' +
  'By hand: one connection that is opened beforehand, nobody else writes, and nothing is rolled back. The body is one ' +
  'UPDATE by primary key that is prepared each time; `_empty` is without it, where neither side waits for the disk and ' +
  'only the time in the process is compared. Slices of both sides in turn, the side that goes first alternating; one ' +
  'ratio per round; the median of the rounds with p10 and p90. guard has its default options.'
