import { startPostgres } from '@holdfast/testkit'
import type { Duration } from '../../packages/holdfast/src/core/options/duration.ts'
import type { BenchScenario } from '../harness/bench-scenario.ts'
import { type Comparison, compare, type Contest, type Effort } from '../harness/compare.ts'
import { meterOf } from '../harness/meter.ts'
import { installLedger } from '../ledger/open-ledger.ts'
import { observedPlace } from './observe-observed.ts'
import { onOffContests } from './observe-on-off.ts'

interface OnOffEffort extends Effort {
  /** How often names and minutes are written. */
  readonly every: Duration
}

/** A slice is longer than the pause between two writes, so that each has one in it. */
const full: OnOffEffort = { rounds: 14, sliceMs: 3_600, warmUps: 1, every: '3 s' }
const quick: OnOffEffort = { rounds: 4, sliceMs: 650, warmUps: 1, every: '500 ms' }
/** Four looks in a slice. */
const looked: Effort = { rounds: 16, sliceMs: 3_900, warmUps: 1 }
const lookedShortly: Effort = { rounds: 4, sliceMs: 950, warmUps: 1 }

export const observe: BenchScenario = {
  about: 'what it costs to be seen: to who does the work, and to the server',
  method:
    'Server and client on one machine, fsync on. on_vs_off: every channel has a listener that does nothing (but ' +
    'ledger.operation, which is for who wants each operation), createMetrics() counts, and a recorder writes ' +
    `every ${full.every}, which is its default (--quick: every ${quick.every}); all of it is switched on before a slice and off ` +
    'after it, and the other side runs with nobody listening. guard: 16 under way on 16 connections, a new key ' +
    'each, empty bodies. consume: 512 callers of one key, put together as the ledger does. observed_vs_not: the ' +
    'same guards on 16 of 500 connections; 40 others hold a named lock each, 8 wait for one of these, the rest is ' +
    'idle; locks() is called once a second on a connection of its own in the process of the guards, so that its ' +
    'own work there counts as well. Slices of both sides ' +
    'in turn, the side that goes first alternating; one ratio per round; the median is reported with p10 and p90. ' +
    '…_cpu: from the same slices, what an operation costs of a processor, of this process and all of the server.',
  async run({ quick: short, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({
      settings: {
        fsync: 'on',
        max_connections: '600',
        shared_buffers: '256MB',
        max_wal_size: '4GB',
      },
    })
    const url = await server.createDatabase('bench')
    await installLedger(url)
    const { every, ...effort } = short ? quick : full
    const comparisons: Comparison[] = []
    const meter = meterOf({ postmaster: server.pid })
    const measure = async (contest: Contest, how: Effort): Promise<void> => {
      comparisons.push(...(await compare(contest, how, progress, meter)))
    }
    for (const opened of await onOffContests(url, every)) {
      await using contest = opened
      await measure(contest, effort)
    }
    await using place = await observedPlace(url)
    await measure(place.contest, short ? lookedShortly : looked)
    return { comparisons, facts: [await place.facts()] }
  },
}
