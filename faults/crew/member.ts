/** One process of the crew: an application with all workloads; see start-crew.ts. */
import { setTimeout as pause } from 'node:timers/promises'
import { randomFor } from '../../bench/harness/random.ts'
import { openHistory } from '../history/open-history.ts'
import { actors } from '../workloads/actors.ts'
import type { Actor, Stage } from './actor.ts'
import { type Application, pgApplication, postgresJsApplication } from './application.ts'
import type { FromMember, Orders, ToMember } from './messages.ts'
import { recorderOf } from './recorder.ts'
import { jumpClock, rightClock } from './wrong-clock.ts'

const tellEveryMs = 100
/** How long the client may take to close its connections before they are left to the operating system. */
const closeMs = 6_000

let work:
  | { readonly stopping: AbortController; readonly done: Promise<{ readonly spent: boolean }> }
  | undefined

process.on('message', (message: ToMember) => {
  if (message.kind === 'clock') jumpClock(message.byMs)
  else if (message.kind === 'work') {
    const stopping = new AbortController()
    work = { stopping, done: begin(message.orders, stopping.signal) }
    work.done.catch(crash)
  } else {
    work?.stopping.abort()
    work?.done.then(({ spent }) => tell({ kind: 'stopped', spent }), crash)
  }
})
process.on('disconnect', () => process.exit(0))
// An application that a fault of the database ends is a violation: it says so and goes down.
process.on('uncaughtException', crash)
process.on('unhandledRejection', crash)
tell({ kind: 'ready' })

function tell(message: FromMember): void {
  if (process.connected) process.send?.(message, () => undefined)
}

function crash(error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  if (process.connected) process.send?.({ kind: 'trouble', text }, () => process.exit(1))
  else process.exit(1)
}

async function begin(orders: Orders, stopping: AbortSignal): Promise<{ readonly spent: boolean }> {
  rightClock()
  const { url, connections, post } = orders
  if (post.client === 'pg') return await workOn(pgApplication(url, connections), orders, stopping)
  const prepare = post.door === 'direct'
  return await workOn(postgresJsApplication(url, connections, prepare), orders, stopping)
}

async function workOn<Tx>(
  app: Application<Tx>,
  orders: Orders,
  stopping: AbortSignal,
): Promise<{ readonly spent: boolean }> {
  using history = openHistory(orders.folder, orders.process)
  const counts: Record<string, number> = {}
  const telling = setInterval(() => tell({ kind: 'progress', counts }), tellEveryMs)
  const epoch = BigInt(orders.epoch)
  const stageOf = (actor: Actor, number: number): Stage<Tx> => {
    const { workload } = actor
    const random = randomFor(orders.seed, orders.index * 1_000 + number)
    return {
      app,
      random,
      process: orders.process,
      index: orders.index,
      stopping,
      without: new Set(orders.without),
      recorder: recorderOf({
        workload,
        process: orders.process,
        history,
        stopping,
        // Only what was really done is progress: whatever refuses for ever stands still.
        ended(outcome) {
          if (outcome === 'ok') counts[workload] = (counts[workload] ?? 0) + 1
        },
        trouble: (text) => tell({ kind: 'trouble', text }),
      }),
      pace: async () => {
        if (!stopping.aborted) await pause(random.integer(0, orders.pauseMs))
      },
      slot: (everyMs) => Number((process.hrtime.bigint() - epoch) / BigInt(everyMs) / 1_000_000n),
    }
  }
  const wanted = actors.filter(
    ({ workload }) => orders.workloads === undefined || orders.workloads.includes(workload),
  )
  let number = 0
  const acting = wanted.flatMap((actor) =>
    Array.from({ length: actor.copies }, async () => {
      number += 1
      await actor.act(stageOf(actor, number))
    }),
  )
  try {
    await Promise.all(acting)
  } finally {
    clearInterval(telling)
    tell({ kind: 'progress', counts })
  }
  const closed = await Promise.race([app.close(), pause(closeMs, 'not yet' as const)])
  return { spent: closed === 'all but what is on its way' }
}
