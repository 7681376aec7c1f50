import { type PostgresServer, startPostgres } from '@holdfast/testkit'
import type { BenchScenario } from '../harness/bench-scenario.ts'
import { type Comparison, type Contest, compare, type Effort } from '../harness/compare.ts'
import { meterOf } from '../harness/meter.ts'
import type { LatencyEffort } from '../harness/compare-latency.ts'
import { openPool } from '../harness/open-pool.ts'
import { newCalls, plainCalls } from '../ledger/bare-batches.ts'
import { createHandWritten } from '../ledger/hand-written.ts'
import { anyKey, type History, keyOf, loadHistory } from '../ledger/load-history.ts'
import { installLedger, ledgerOn } from '../ledger/open-ledger.ts'
import { createUsage, fillUsage } from '../ledger/textbook.ts'
import {
  callers,
  type Ground,
  hotVsTextbook,
  idleLatency,
  joinedVsCte,
  spreadVsTextbook,
  textbookConnections,
  versusBare,
} from './ledger-contests.ts'
import {
  batchingOf,
  hotUpdateShare,
  perOperation,
  storedPerMovement,
  walOf,
  walOfJoined,
} from './ledger-facts.ts'

const hotRows = 10_000
const hotHistory: History = { deep: hotRows, others: 0, each: 0 }
const spreadHistory: History = { deep: 1, others: 100_000, each: 1 }

interface Efforts {
  readonly rates: Effort
  readonly latency: LatencyEffort
}

const full: Efforts = {
  rates: { rounds: 20, sliceMs: 1_000 },
  latency: { rounds: 30, calls: 200, limitMs: 60_000 },
}
const quick: Efforts = {
  rates: { rounds: 4, sliceMs: 300, warmUps: 1 },
  latency: { rounds: 6, calls: 100, limitMs: 6_000 },
}

export const ledger: BenchScenario = {
  about: 'the ledger against patterns by hand, and against its own SQL without us',
  method:
    'Server and client on one machine, fsync on, shared_buffers 256MB. Slices of both sides in turn, the side ' +
    'that goes first alternating; one ratio per round; the median of the rounds is reported with p10 and p90. ' +
    `textbook: ${callers} callers on a pool of ${textbookConnections} connections, as ours; its cost grows with its ` +
    `table, so before every slice its one key is brought back to ${hotRows} rows (hot_vs_textbook; our account has ` +
    'at least as many movements), to none (hot_vs_textbook_fresh), and 100,000 keys have one row each ' +
    '(spread_vs_textbook); its sum is served by a covering index, freshly vacuumed. ' +
    'bare: a prepared statement calls apply_plain(), and for best apply_new() as we do, with as many lines in a call and as many calls under ' +
    'way as our combiner had just before; lines and new operation ids lie ready in tables, in binary, and no answer ' +
    'is read. joined: 16 transactions under way on 16 connections, 100,000 keys. ' +
    'idle: one caller, one connection, calls in turn; a ratio of median latencies, where more than 1 is slower. ' +
    'hot_update_share: of all updates of balance in the run on 100,000 keys, from the server’s statistics.',
  async run({ quick: short, progress }) {
    const efforts = short ? quick : full
    progress('starting PostgreSQL and loading accounts')
    await using server = await startPostgres({
      settings: {
        fsync: 'on',
        max_connections: '100',
        shared_buffers: '256MB',
        max_wal_size: '4GB',
      },
    })
    const meter = meterOf({ postmaster: server.pid })
    const comparisons: Comparison[] = []
    const run = async (contest: Contest, effort: Effort): Promise<void> => {
      comparisons.push(...(await compare(contest, effort, progress, meter)))
    }

    await using hot = await ground(server, 'hot', hotHistory, () => keyOf(0))
    await run(hotVsTextbook(hot, hotRows, { name: 'hot_vs_textbook', bar: 100 }), efforts.rates)
    await run(hotVsTextbook(hot, 0, { name: 'hot_vs_textbook_fresh' }), efforts.rates)
    const hotBatching = await batchingOf(hot)
    for (const [calls, bars] of [
      [plainCalls, { name: 'hot_vs_bare', bar: 0.85, barByCost: 0.98 }],
      [newCalls(true), { name: 'hot_vs_best', barByCost: 0.8 }],
    ] as const) {
      await using contest = await versusBare(hot, hotBatching, calls, bars)
      await run(contest, efforts.rates)
    }

    // Now, before another checkpoint makes whole pages go to the WAL again.
    const hotSample = await walOf(hot)

    await using spread = await ground(server, 'spread', spreadHistory, () => anyKey(spreadHistory))
    await fillUsage(spread.pool, spreadHistory.others + 1, 1)
    await createHandWritten(spread.url, spreadHistory.others)
    await run(spreadVsTextbook(spread), efforts.rates)
    const spreadBatching = await batchingOf(spread)
    for (const [calls, bars] of [
      [plainCalls, { name: 'spread_vs_bare', bar: 0.8, barByCost: 0.9 }],
      [newCalls(false), { name: 'spread_vs_best', barByCost: 0.8 }],
    ] as const) {
      await using contest = await versusBare(spread, spreadBatching, calls, bars)
      await run(contest, efforts.rates)
    }
    for (const [prepared, bars] of [
      [
        { ours: false, byHand: false },
        { name: 'joined_vs_cte', bar: 0.85, barByCost: 0.83 },
      ],
      [
        { ours: true, byHand: false },
        { name: 'joined_prepared_vs_cte', barByCost: 0.95 },
      ],
      [
        { ours: false, byHand: true },
        { name: 'joined_vs_prepared_cte', barByCost: 0.5 },
      ],
    ] as const) {
      await run(joinedVsCte(spread, prepared, bars), efforts.rates)
    }
    {
      const pool = await openPool(spread.url, 1)
      comparisons.push(await idleLatency(pool, spreadHistory, efforts.latency))
      await pool.end()
    }
    const facts = [
      perOperation([hotSample, await walOf(spread), await walOfJoined(spread)]),
      await storedPerMovement(hot, spread),
    ]
    // Backends hand in what they counted when they end.
    await spread.pool.end()
    comparisons.push(await hotUpdateShare(spread.url))
    return { comparisons, facts }
  },
}

async function ground(
  server: PostgresServer,
  name: string,
  history: History,
  pick: () => string,
): Promise<Ground & AsyncDisposable> {
  const url = await server.createDatabase(name)
  await installLedger(url)
  await loadHistory(url, history)
  await createUsage(url)
  const pool = await openPool(url, textbookConnections)
  return {
    url,
    pool,
    history,
    pick,
    ledger: ledgerOn(pool),
    [Symbol.asyncDispose]: async () => {
      if (!pool.ended) await pool.end()
    },
  }
}
