import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { type Caller, type LatencyEffort, type Turns, turnsOf } from '../harness/compare-latency.ts'
import { openPool } from '../harness/open-pool.ts'
import { secondsOf } from '../harness/processor-seconds.ts'
import { ledgerOn } from './open-ledger.ts'
import {
  anyKeyOf,
  deepKeys,
  type IdKind,
  orderedId,
  randomLoadedId,
  type Years,
  yearsOf,
} from './years.ts'

/** What a caller calls, again and again. */
export interface Line {
  readonly at: number
  readonly size: number
  readonly kind: IdKind | 'replay'
}

export async function inTurn(
  { urls, effort }: { readonly urls: readonly string[]; readonly effort: LatencyEffort },
  isAsync: boolean,
  wanted: readonly Line[],
): Promise<readonly Turns[]> {
  const pools: Pool[] = []
  try {
    const callers: Caller[] = []
    for (const { at, size, kind } of wanted) {
      const pool = await openPool(urls[at] ?? '', 1)
      pools.push(pool)
      if (isAsync) await pool.query('SET synchronous_commit = off')
      const { rows } = await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      const pid = rows[0]?.pid ?? 0
      callers.push({
        label: `${kind}, ${size.toLocaleString('en')} movements`,
        call: callOf(pool, kind, yearsOf(size)),
        ...(secondsOf(pid) === undefined ? {} : { seconds: () => secondsOf(pid) ?? Number.NaN }),
      })
    }
    return await turnsOf(callers, effort)
  } finally {
    await Promise.all(pools.map((pool) => pool.end()))
  }
}

export function callOf(pool: Pool, kind: Line['kind'], years: Years): () => Promise<unknown> {
  const { quota } = ledgerOn(pool)
  if (kind === 'replay') {
    return async () => {
      const operationId = randomLoadedId(1 + Math.floor(Math.random() * years.deep))
      const verdict = await quota.consume(deepKeys.random, 1, { operationId })
      if (!verdict.ok || !verdict.replayed) throw new Error('a loaded operation was not known')
    }
  }
  const idOf = kind === 'random' ? randomUUID : orderedId
  let turn = 0
  return async () => {
    turn += 1
    const key = turn % 5 === 0 ? deepKeys[kind] : anyKeyOf(kind, years)
    const verdict = await quota.consume(key, 1, { operationId: idOf() })
    if (!verdict.ok) throw new Error('an operation was refused')
  }
}
