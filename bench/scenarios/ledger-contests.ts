import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { byHand } from '../harness/by-hand.ts'
import type { Bar, Contest, Side } from '../harness/compare.ts'
import {
  type Caller,
  type LatencyEffort,
  latenciesOf,
  latencyRatio,
} from '../harness/compare-latency.ts'
import type { Comparison } from '../harness/compare.ts'
import { type BareCalls, bareSide, plainCalls } from '../ledger/bare-batches.ts'
import { consumeByHand } from '../ledger/hand-written.ts'
import { anyKey, type History, keyOf } from '../ledger/load-history.ts'
import { type LedgerOn, ledgerOn } from '../ledger/open-ledger.ts'
import { fillUsage, textbookSide } from '../ledger/textbook.ts'

export const callers = 512
export const textbookConnections = 16
const joinedWorkers = 16

/** A database with a past, and the ledger on it. */
export interface Ground {
  readonly url: string
  readonly pool: Pool
  readonly ledger: LedgerOn
  readonly history: History
  /** What operations are about. */
  pick(): string
}

export function consume({ ledger, pick }: Ground): Promise<unknown> {
  return ledger.quota.consume(pick(), 1, { operationId: randomUUID() })
}

function ours(ground: Ground, label: string): Side {
  return { label: `${callers} callers, ${label}`, operation: () => consume(ground) }
}

/** One key. Before every slice of its own, the pattern's table is brought back to `rows` rows. */
export function hotVsTextbook(
  ground: Ground,
  rows: number,
  named: Bar & { name: string },
): Contest {
  const scene = async (): Promise<() => Promise<void>> => {
    await fillUsage(ground.pool, 1, rows)
    return async () => {}
  }
  return {
    ...named,
    workers: callers,
    measured: ours(ground, 'one key'),
    baseline: textbookSide(
      ground.pool,
      callers,
      `${callers} callers, one key, BEGIN, advisory lock, SUM of ${rows} rows and more, INSERT, COMMIT`,
      () => keyOf(0),
      scene,
    ),
  }
}

export function spreadVsTextbook(ground: Ground): Contest {
  const keys = ground.history.others.toLocaleString('en')
  return {
    name: 'spread_vs_textbook',
    bar: 6,
    workers: callers,
    measured: ours(ground, `${keys} keys`),
    baseline: textbookSide(
      ground.pool,
      callers,
      `${callers} callers, ${keys} keys, BEGIN, advisory lock, SUM, INSERT, COMMIT`,
      ground.pick,
    ),
  }
}

/** How the combiner sends: pgbench is to send the same. */
export interface Batching {
  readonly size: number
  readonly underWay: number
}

/** A ratio, and what it is to reach by time and by processor time. */
interface Bars {
  readonly name: string
  readonly bar?: number
  readonly barByCost: number
}

export async function versusBare(
  ground: Ground,
  { size, underWay }: Batching,
  calls: BareCalls,
  { name, ...bars }: Bars,
): Promise<Contest & AsyncDisposable> {
  const hot = ground.history.others === 0
  const baseline = await bareSide({
    url: ground.url,
    calls,
    size,
    clients: underWay,
    first: hot ? 0 : 1,
    last: hot ? 0 : ground.history.others,
    name,
  })
  return {
    name,
    ...bars,
    workers: callers,
    measured: ours(ground, hot ? 'one key' : `${ground.history.others.toLocaleString('en')} keys`),
    baseline,
    ...(calls === plainCalls
      ? {}
      : {
          clientVsServer: {
            name: `${hot ? 'hot' : 'spread'}_client_vs_server`,
            bar: 0.25,
            barIs: 'at most' as const,
          },
        }),
    [Symbol.asyncDispose]: async () => await baseline[Symbol.asyncDispose](),
  }
}

/** Which of the two sides is prepared by name. */
interface Prepared {
  readonly ours: boolean
  readonly byHand: boolean
}

/** In the caller's transaction: BEGIN, one statement, COMMIT on both sides. */
export function joinedVsCte(ground: Ground, prepared: Prepared, bars: Bars): Contest {
  const { pool, pick } = ground
  const ledger = prepared.ours ? ledgerOn(pool, {}, { prepareJoined: true }) : ground.ledger
  const how = (isPrepared: boolean): string => (isPrepared ? ', prepared by name' : '')
  return {
    ...bars,
    workers: joinedWorkers,
    measured: {
      label: `BEGIN, consume(tx, …)${how(prepared.ours)}, COMMIT`,
      operation: () => joined({ ...ground, ledger }),
    },
    baseline: {
      label: `BEGIN, guarded UPDATE and INSERT in one statement${how(prepared.byHand)}, COMMIT`,
      operation: () =>
        byHand(pool, (client) => consumeByHand(client, pick(), randomUUID(), prepared.byHand)),
    },
  }
}

export function joined({ ledger, pool, pick }: Ground): Promise<void> {
  return byHand(pool, (client) =>
    ledger.quota.consume(client, pick(), 1, { operationId: randomUUID() }),
  )
}

/** One caller alone, on one connection, with and without the combiner in between. */
export async function idleLatency(
  pool: Pool,
  history: History,
  effort: LatencyEffort,
): Promise<Comparison> {
  const caller = (label: string, coalesce: boolean): Caller => {
    const { quota } = ledgerOn(pool, { coalesce })
    return {
      label,
      call: () => quota.consume(anyKey(history), 1, { operationId: randomUUID() }),
    }
  }
  const callersInTurn = [
    caller('one caller, coalescing', true),
    caller('one caller, coalesce: false', false),
  ] as const
  const [combined = [], direct = []] = await latenciesOf(callersInTurn, effort)
  return latencyRatio(
    { name: 'idle_latency_vs_direct', bar: 1.1, barIs: 'at most' },
    { label: callersInTurn[0].label, medians: combined },
    { label: callersInTurn[1].label, medians: direct },
  )
}
