import { startPair } from '../cluster/pair.ts'
import { startPatroniCluster } from '../cluster/patroni.ts'
import { startSingle } from '../cluster/single.ts'
import type { Seed } from '../core/model.ts'
import { pairCompanions, pairFaults, singleFaults } from '../nemesis/index.ts'
import { patroniFaults } from '../nemesis/patroni-faults.ts'
import { planFor, planInTurn } from '../nemesis/plan.ts'
import { type RunOptions, type RunResult, runEpisodes } from './run-episodes.ts'

type Choices = Omit<RunOptions<never>, 'start' | 'plan'> & {
  /** Names of the only faults to choose from. */
  readonly only: readonly string[] | undefined
}

export interface Tier {
  readonly about: string
  /** How many failovers an episode has, if that is what the tier is for. */
  readonly failovers?: number
  /** Whether a fault of this name is one. */
  isFailover(name: string): boolean
  readonly notes: readonly string[]
  run(choices: Choices): Promise<RunResult>
}

/** In one database: what was confirmed before the first must be there after the last. */
const failoversPerEpisode = 5
/** Of Patroni, which takes its time. */
const patroniFailoversPerEpisode = 2

const killedNotDark =
  'Processes are killed and the machine is not, so what was written is in the cache of the operating system: the servers run with fsync off.'
const clockNote =
  'Clock jumps replace Date in the application; timers and the monotonic clock stay right, as they do on a real machine.'

/** What follows from the loss of confirmed commits, in the words of the checks. */
const losses: ReadonlySet<string> = new Set([
  'acknowledged_lost',
  'answer_differs',
  'not_linearizable',
  'refused_for_lost',
  // What it was refused for was lost afterwards.
  'refused_wrongly',
  'replay_differs',
  'tick_lost',
  'told_twice',
])
/** What nobody was told is visible for a moment after these, and is lost then: a refusal may rest on it. */
const showing: readonly string[] = ['failover_cancelled', 'failover_after_crash']
const lossyFailovers = pairFaults.filter(({ name }) =>
  ['failover', 'failover_behind'].includes(name),
)

export const tiers: Readonly<Record<string, Tier>> = {
  single: {
    about: 'one server behind PgBouncer: every fault but failover',
    isFailover: () => false,
    notes: [killedNotDark, clockNote],
    run: async (choices) =>
      await runEpisodes({
        ...choices,
        start: startSingle,
        plan: (seed: Seed) => planFor(seed, chosen(singleFaults, choices.only)),
      }),
  },
  pair: {
    about: 'a primary with a synchronous standby, behind PgBouncer: failovers',
    failovers: failoversPerEpisode,
    isFailover: (name) => pairFaults.some((fault) => fault.name === name),
    notes: [
      killedNotDark,
      clockNote,
      'A failover: all processes of the primary are killed and its data is deleted, the standby is promoted, PgBouncer and the port lead to it, and a new standby is made; until that one streams no commit is confirmed (synchronous_standby_names = ANY 1).',
      'After a crash, and after waits that were cancelled, the server shows what nobody was told and what it loses with the failover. A refusal for want of room that rests on it is counted and is no violation: nothing is promised of it but that nothing was done.',
    ],
    run: async (choices) =>
      await runEpisodes({
        ...choices,
        start: startPair,
        forgiven: (faults) =>
          new Set(faults.some((name) => showing.includes(name)) ? ['refused_for_lost'] : []),
        plan: (seed: Seed) =>
          planInTurn(
            seed,
            chosen(pairFaults, choices.only),
            failoversPerEpisode,
            choices.only === undefined ? pairCompanions : [],
          ),
      }),
  },
  lagging: {
    about:
      'the same with an asynchronous standby that is behind: what is promised although commits are lost',
    failovers: failoversPerEpisode,
    isFailover: (name) => pairFaults.some((fault) => fault.name === name),
    notes: [
      killedNotDark,
      'synchronous_standby_names is empty: the server confirms what the standby does not have, and a failover loses it. That confirmed work is lost is counted and is no violation. What has to hold all the same: no token comes again or falls behind, nobody writes behind a newer token, nothing is there twice, unasked or in half, no bound is crossed.',
    ],
    run: async (choices) => {
      const result = await runEpisodes({
        ...choices,
        start: async () => await startPair({ synchronous: false }),
        forgiven: () => losses,
        plan: (seed: Seed) =>
          planInTurn(seed, chosen(lossyFailovers, choices.only), failoversPerEpisode),
      })
      if (result.episodes.some(({ lost }) => lost !== undefined)) return result
      const why = 'nothing was ever lost, so nothing was shown'
      return { ...result, broken: [...result.broken, { number: 0, seed: choices.seed, why }] }
    },
  },
  patroni: {
    about: 'two servers under Patroni and etcd, behind PgBouncer: failovers as in production',
    failovers: patroniFailoversPerEpisode,
    isFailover: (name) => patroniFaults.some((fault) => fault.name === name),
    notes: [
      killedNotDark,
      'Patroni with synchronous_mode and synchronous_mode_strict, ttl 20 s, loop_wait 1 s, retry_timeout 3 s, primary_start_timeout 0; PgBouncer (RELOAD, RECONNECT) and the port follow GET /primary, asked ten times a second.',
      'crash_primary: SIGKILL of the server; lose_machine: of Patroni as well, so that its key has to expire; lose_machine_behind: the same, and for 500 ms before it nothing reached the standby; orphan_primary: of Patroni alone, while the server goes on; switch_over: by Patroni, in order. The old primary always comes back as the synchronous standby.',
    ],
    run: async (choices) =>
      await runEpisodes({
        ...choices,
        start: startPatroniCluster,
        plan: (seed: Seed) =>
          planInTurn(seed, chosen(patroniFaults, choices.only), patroniFailoversPerEpisode),
      }),
  },
}

function chosen<F extends { readonly name: string }>(
  faults: readonly F[],
  only: readonly string[] | undefined,
): readonly F[] {
  const left = faults.filter(({ name }) => only?.includes(name) ?? true)
  if (left.length > 0) return left
  throw new Error(`there are only these faults: ${faults.map(({ name }) => name).join(', ')}`)
}
