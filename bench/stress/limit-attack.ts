import { withClient } from '@holdfast/testkit'
import { counted } from '../harness/counted.ts'
import { startTeam, type Team } from '../harness/team.ts'
import { claimTables } from './claims-table.ts'

export interface LimitSetup {
  readonly url: string
  readonly claimers: number
  readonly limit: number
  /** How long each row is in flight. */
  readonly holdMs: number
}

export interface LimitOrder {
  readonly seconds: number
  /** Without the key's lock this is the control. */
  readonly locked: boolean
}

export interface LimitReport {
  /** Rows done, by key. */
  readonly done: Readonly<Record<string, number>>
  readonly troubles: readonly string[]
}

const processes = 4
const claimers = 8
const limit = 3
const holdMs = 100
const others = 6
const sliceSeconds = 3
/** A busy machine is not a full key: with fewer rounds the share is told, but not judged. */
const leastShare = 0.6
const leastRounds = 5

export interface LimitResult {
  readonly operations: number
  readonly violations: readonly string[]
  readonly caught: boolean
  readonly notes: readonly string[]
}

/** At most `limit` rows of a key in flight, many claimers, and one key that is always full. */
export async function attackLimit(task: {
  readonly url: string
  readonly seconds: number
  readonly progress: (text: string) => void
}): Promise<LimitResult> {
  const { url, seconds, progress } = task
  await withClient(url, async (client) => await client.query(claimTables))
  await using team = await startTeam<LimitSetup, LimitOrder, LimitReport>(
    new URL('./limit-claimers.ts', import.meta.url),
    processes,
    { url, claimers, limit, holdMs },
  )
  // In turn, so that whatever else the machine does hits both.
  const slice = { seconds: Math.min(sliceSeconds, seconds / 2), locked: true }
  const rounds = Math.max(1, Math.floor(seconds / 2 / slice.seconds))
  const played: { alone: Played[]; beside: Played[] } = { alone: [], beside: [] }
  for (let round = 0; round < rounds; round += 1) {
    played.alone.push(await play(team, url, { ...slice, full: false }))
    played.beside.push(await play(team, url, { ...slice, full: true }))
    progress(`limit: round ${round + 1} of ${rounds}`)
  }
  const [alone, beside] = [together(played.alone), together(played.beside)]
  const control = await play(team, url, { full: true, seconds: 3, locked: false })

  const share = beside.others / alone.others
  const perSecond = (count: number): number => Math.round(count / (rounds * slice.seconds))
  const violations = [
    ...[alone, beside].flatMap(({ most, troubles }) => [
      ...(most > limit ? [`${most} rows of a key were in flight, the limit is ${limit}`] : []),
      ...counted(troubles),
    ]),
    ...(beside.hot === 0 ? ['the full key was not served'] : []),
    ...(share < leastShare && rounds >= leastRounds
      ? [`other keys were served at ${share.toFixed(2)} of their rate beside a full one`]
      : []),
  ]
  return {
    operations: alone.others + beside.others + beside.hot,
    violations,
    caught: control.most > limit,
    notes: [
      `limit: ${processes * claimers} claimers, at most ${limit} of a key: ${beside.most} in flight at most, by the history`,
      `limit: other keys ${perSecond(alone.others)} /s alone, ${perSecond(beside.others)} /s beside a full key (${share.toFixed(2)}); full key ${perSecond(beside.hot)} /s`,
      `limit, counted without the lock: ${control.most} in flight at most`,
    ],
  }
}

interface Played {
  readonly most: number
  readonly others: number
  readonly hot: number
  readonly troubles: readonly string[]
}

function together(slices: readonly Played[]): Played {
  return slices.reduce((all, each) => ({
    most: Math.max(all.most, each.most),
    others: all.others + each.others,
    hot: all.hot + each.hot,
    troubles: [...all.troubles, ...each.troubles],
  }))
}

async function play(
  team: Team<LimitOrder, LimitReport>,
  url: string,
  { full, seconds, locked }: { full: boolean; seconds: number; locked: boolean },
): Promise<Played> {
  await withClient(url, async (client) => {
    await client.query('TRUNCATE task, history')
    // The full key has the oldest rows, so that it stands in front of everything.
    await client.query(
      `INSERT INTO task (id, tenant) SELECT g, 'a full one' FROM generate_series(1, $1::int) g`,
      [full ? 50_000 : 0],
    )
    await client.query(
      `INSERT INTO task (id, tenant) SELECT 1000000 + g, 'other ' || g % $1::int
       FROM generate_series(1, $2::int) g`,
      [others, Math.ceil(seconds * 1_000 + 5_000)],
    )
    await client.query('VACUUM ANALYZE task')
  })
  const reports = await team.round({ seconds, locked })
  const sum = (full_: boolean): number =>
    reports
      .flatMap(({ done }) => Object.entries(done))
      .filter(([tenant]) => (tenant === 'a full one') === full_)
      .reduce((total, [, count]) => total + count, 0)
  return {
    most: await mostInFlight(url),
    others: sum(false),
    hot: sum(true),
    troubles: reports.flatMap(({ troubles }) => troubles),
  }
}

/**
 * A claim is written down before it commits, an end too. Whoever may claim only because of an end has
 * seen its commit, so in an exact limit that end is always written down before the claim.
 */
async function mostInFlight(url: string): Promise<number> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query<{ most: number }>(`
      SELECT coalesce(max(flying), 0)::int AS most FROM (
        SELECT sum(change) OVER (PARTITION BY tenant ORDER BY at, seq) AS flying FROM history) AS h`)
    return rows[0]?.most ?? 0
  })
}
