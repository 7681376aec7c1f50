import { setTimeout as pause } from 'node:timers/promises'
import {
  type PatroniMember,
  sendSignal,
  startEtcd,
  startPatroni,
  startPgBouncer,
  waitUntil,
} from '@holdfast/testkit'
import { rowsOf } from './ask.ts'
import { openCuttablePort } from './cuttable-port.ts'
import { openDatabases } from './databases.ts'
import { doorsAnswer, doorsTo } from './doors.ts'
import { keepRunning } from './keep-running.ts'
import { lastLines } from './last-lines.ts'
import type { RunnableCluster } from './parts.ts'
import { poolerSettings, serverSettings } from './settings.ts'

/**
 * How a primary is lost: its server crashes; its machine does, Patroni included; the same while the standby is
 * behind; it is orphaned, and goes on as if it were the primary while Patroni is dead and the other one is
 * promoted; or somebody switches over.
 */
export type PrimaryLoss = 'crash' | 'machine' | 'behind' | 'orphan' | 'switchover'

/** How long it took, from the loss. */
export interface Failover {
  readonly from: string
  readonly to: string
  /** Until the other one was the primary and all doors led to it. */
  readonly promotedMs: number
  /** Until the old one was its synchronous standby. */
  readonly settledMs: number
}

/**
 * Two servers under Patroni and etcd: synchronous replication, and nothing is committed without the standby.
 * PgBouncer and the way past it follow what Patroni says.
 */
export interface PatroniCluster extends RunnableCluster {
  readonly tier: 'patroni'
  /** Takes the primary away; resolves when the other one is it, with the old one as its standby. */
  failover(how: PrimaryLoss): Promise<Failover>
}

const settleMs = 120_000
const lookEveryMs = 100
/** Long enough for commits to be under way, and short enough for Patroni to overlook it. */
const behindMs = 500

export async function startPatroniCluster({ synchronous = true } = {}): Promise<PatroniCluster> {
  await using stack = new AsyncDisposableStack()
  const etcd = stack.use(await startEtcd())
  const start = async (name: string): Promise<PatroniMember> =>
    stack.use(await startPatroni({ etcd, name, synchronous, settings: serverSettings }))
  const members = [await start('one'), await start('two')] as const
  const [first] = members
  const pooler = stack.use(await startPgBouncer(first, { poolSize: 12, settings: poolerSettings }))
  const direct = stack.use(await openCuttablePort('direct', first))
  const pooled = stack.use(await openCuttablePort('pooled', pooler))
  const ports = [direct, pooled]
  const compass = stack.use(
    follow(members, async (primary) => {
      await pooler.repoint(primary)
      direct.leadTo(primary)
      // As a proxy does it that shuts down the sessions of a server which is no longer the right one.
      direct.cutAll()
    }),
  )
  const through = (port: number): string => first.url().replace(`:${first.port}/`, `:${port}/`)
  const urls = { direct: through(direct.port), pooled: through(pooled.port) }
  const databases = openDatabases(() => compass.primary.url())
  const other = (member: PatroniMember): PatroniMember =>
    member === members[0] ? members[1] : members[0]

  const settled = async (): Promise<void> => {
    await waitUntil(
      'one server is the primary and the other one may be promoted',
      async () => {
        const { primary } = compass
        const both = (await primary.isPrimary()) && (await other(primary).isNext())
        return both ? true : undefined
      },
      { limitMs: settleMs, everyMs: lookEveryMs },
    )
  }
  const mend = async (): Promise<void> => {
    for (const member of members) if (!member.running) await member.startAgain()
    await settled()
    await keepRunning('PgBouncer', pooler, pooler.adminUrl, 'SHOW VERSION')
  }
  await settled()
  const owned = stack.move()
  return {
    tier: 'patroni',
    pooler,
    ports,
    // Patroni keeps one for each member, under its name.
    ownSlots: members.map(({ name }) => name),
    mend,
    async failover(how) {
      await settled()
      const old = compass.primary
      const next = other(old)
      const began = performance.now()
      if (how === 'switchover') await old.switchTo(next)
      else if (how === 'behind') {
        await stopSending(old)
        await pause(behindMs)
        await old.kill('both')
      } else await old.kill(killed[how])
      await waitUntil(`${next.name} is the primary`, () => compass.primary === next || undefined, {
        limitMs: settleMs,
        everyMs: lookEveryMs,
      })
      const promotedMs = Math.round(performance.now() - began)
      if (!old.running) await old.startAgain()
      await settled()
      const settledMs = Math.round(performance.now() - began)
      return { from: old.name, to: next.name, promotedMs, settledMs }
    },
    async open(prepare) {
      const database = await databases.make(prepare)
      return { database, doors: doorsTo(urls, database) }
    },
    adminUrl: (database) => compass.primary.url(database),
    drop: async (database) => await databases.drop(database),
    async heal() {
      for (const port of ports) port.restore()
      const pids = [...members.flatMap((member) => member.processes()), pooler.pid]
      for (const pid of pids) sendSignal(pid, 'SIGCONT')
      await mend()
      await doorsAnswer(urls)
    },
    logs: async () =>
      await lastLines({
        one: members[0].logFile,
        two: members[1].logFile,
        etcd: etcd.logFile,
        pgbouncer: pooler.logFile,
      }),
    [Symbol.asyncDispose]: async () => await owned.disposeAsync(),
  }
}

const killed = { crash: 'postgres', machine: 'both', orphan: 'patroni' } as const

/** What is written from now on does not reach the standby. */
async function stopSending(primary: PatroniMember): Promise<void> {
  const senders = await rowsOf<{ pid: number }>(
    primary.url(),
    'SELECT pid FROM pg_stat_replication',
  )
  for (const { pid } of senders) sendSignal(pid, 'SIGSTOP')
}

/** Knows who is the primary. */
interface Compass extends AsyncDisposable {
  readonly primary: PatroniMember
}

/** Asks all members again and again, and turns to the one that says it is the primary. */
function follow(
  members: readonly [PatroniMember, ...PatroniMember[]],
  turn: (primary: PatroniMember) => Promise<void>,
): Compass {
  const ending = new AbortController()
  let primary = members[0]
  const look = async (): Promise<void> => {
    const answers = await Promise.all(members.map((member) => member.isPrimary()))
    const found = members[answers.indexOf(true)]
    if (found === undefined || found === primary) return
    await turn(found)
    primary = found
  }
  const looking = (async () => {
    while (!ending.signal.aborted) {
      // What could not be turned now is turned at the next look.
      await look().catch(() => undefined)
      await pause(lookEveryMs)
    }
  })()
  return {
    get primary() {
      return primary
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await looking
    },
  }
}
