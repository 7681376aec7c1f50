import { setTimeout as after } from 'node:timers/promises'
import type { MoveOutcome, MoveStep } from '../../packages/holdfast/src/shards/index.ts'
import type { Random } from '../harness/random.ts'
import { type Cluster, type Name, names, otherThan, ownersOf } from './shards-cluster.ts'
import { type Applications, Mover } from './shards-crew.ts'
import type { MoverTask } from './shards-model.ts'

/** What befalls a move. */
export const blows = [
  'kill the mover',
  'kill the mover, then undo',
  'kill an application',
  'kill a backend',
  'restart a server',
  'end a sender',
] as const
export type Blow = (typeof blows)[number]

/** Steps at which it may fall, from the first to the last. */
const steps = [
  'opened',
  'expected',
  'published',
  'kept',
  'subscribed',
  'copying',
  'copied',
  'marked',
  'quiet',
  'ended',
  'arrived',
  'counted',
  'taken',
  'handed over',
  'closed',
] as const satisfies readonly MoveStep[]

export interface Moved {
  readonly ms: number
  readonly moved: boolean
  readonly pausedMs: number | undefined
  /** How many processes it took. */
  readonly movers: number
}

/** Moves a bucket to the other server; the blow falls at one of its steps, and others bring it to its end. */
export async function moveUnder(
  cluster: Cluster,
  applications: Applications,
  bucket: number,
  random: Random,
  blow: Blow,
): Promise<Moved> {
  const since = performance.now()
  const to = otherThan((await ownersOf(cluster, bucket))[0] ?? 'north')
  const at = steps[random.integer(0, steps.length - 1)] as MoveStep
  let task: MoverTask = { urls: cluster.urls, act: 'move', buckets: [bucket], to }
  let [struck, movers] = [false, 0]
  let striking = Promise.resolve()
  for (;;) {
    const mover = new Mover(task)
    movers += 1
    let outcome: MoveOutcome | undefined
    let over = false
    let [id, why]: [id?: string, why?: string] = []
    for await (const news of mover.news()) {
      if (news.kind === 'over') [outcome, over] = [news.outcome, true]
      if (news.kind === 'failed') why = news.why
      if (news.kind !== 'step') continue
      id = news.id
      if (struck || news.step !== at) continue
      struck = true
      if (blow.startsWith('kill the mover')) await mover.kill()
      else striking = strike(cluster, applications, random, blow)
    }
    await mover.kill()
    await striking
    if (over) {
      const moved = outcome?.moved === true
      return { ms: performance.now() - since, moved, pausedMs: outcome?.pausedMs, movers }
    }
    if (movers > 20) throw new Error(`a move does not end: ${blow} at ${at}, ${why}`)
    // A server that has just been killed may be what is in the way.
    await after(100)
    const known = id ?? (await openMove(cluster, bucket))
    if (known === undefined) continue
    const undo =
      blow === 'kill the mover, then undo' && movers === 1 && !(await isTaken(cluster, known, to))
    task = { urls: cluster.urls, act: undo ? 'undo' : 'resume', id: known }
  }
}

async function strike(
  { servers, pools }: Cluster,
  applications: Applications,
  random: Random,
  blow: Blow,
): Promise<void> {
  const name = names[random.integer(0, 1)] as Name
  if (blow === 'kill an application') {
    await applications.killOne(random.integer(0, 1))
  } else if (blow === 'restart a server') {
    await servers[name].shutDown('immediate')
    await servers[name].startAgain()
  } else if (blow === 'kill a backend') {
    const { rows } = await pools[name].query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()
       AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1`,
    )
    // The postmaster takes that for a crash, and starts all of them anew.
    if (rows[0] !== undefined) process.kill(rows[0].pid, 'SIGKILL')
  } else {
    for (const pool of Object.values(pools)) {
      await pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'walsender'`,
      )
    }
  }
}

async function openMove({ moves }: Cluster, bucket: number): Promise<string | undefined> {
  const { primaries } = await moves.status()
  return primaries
    .flatMap((primary) => primary.moves)
    .find(({ ended, buckets }) => !ended && buckets.includes(bucket))?.id
}

async function isTaken({ pools }: Cluster, id: string, to: Name): Promise<boolean> {
  const { rowCount } = await pools[to].query(
    `SELECT FROM holdfast.shard_move WHERE id = $1 AND step IN ('taken', 'done')`,
    [id],
  )
  return rowCount === 1
}
