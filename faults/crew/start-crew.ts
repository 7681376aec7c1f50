import type { ChildProcess } from 'node:child_process'
import { waitUntil } from '@holdfast/testkit'
import type { Crew, Doors, Seed } from '../core/model.ts'
import { now } from '../history/open-history.ts'
import type { Missing } from './actor.ts'
import { posts } from './application.ts'
import type { FromMember, ToMember } from './messages.ts'
import { isAlive, kill, openSpares, type Spares } from './spares.ts'

export interface CrewOptions {
  readonly doors: Doors
  /** Where histories go. */
  readonly folder: string
  readonly seed: Seed
  /** @defaultValue 3: pg through the pooler and past it, postgres.js through the pooler */
  readonly size?: number
  /** @defaultValue all */
  readonly workloads?: readonly string[]
  /** Of a control. */
  readonly without?: readonly Missing[]
  /** Of each process. @defaultValue 6 */
  readonly connections?: number
  /** The longest pause between two operations of an actor. @defaultValue 20 */
  readonly pauseMs?: number
  /** Who is taken, and taken in the place of the killed; they can be shared by one episode after another. */
  readonly spares?: Spares
}

/** A crew, and what went wrong with its processes themselves. */
export interface StartedCrew extends Crew {
  /** A process that crashed, did not stop, or used the library wrongly: one sentence each. */
  readonly troubles: readonly string[]
}

interface Member {
  readonly child: ChildProcess
  counts: Readonly<Record<string, number>>
  stopped: boolean
  spent: boolean
}

/** After half a minute without a primary, hundreds of ticks are due, and whoever fires them ends with the last. */
const stopMs = 35_000

/** Starts applications that run the workloads and write histories until they are stopped. */
export async function startCrew(options: CrewOptions): Promise<StartedCrew> {
  const { doors, size = 3, spares = openSpares(1) } = options
  const epoch = now()
  const troubles: string[] = []
  /** Of those that are gone. */
  const past: Record<string, number>[] = []
  const lives = Array.from({ length: size }, () => 0)
  let ending = false

  const start = async (index: number): Promise<Member | undefined> => {
    const child = await spares.take()
    if (ending) {
      spares.giveBack(child)
      return undefined
    }
    const member: Member = { child, counts: {}, stopped: false, spent: false }
    const life = (lives[index] = (lives[index] ?? 0) + 1)
    const process = `app${index}.${life}`
    const post = posts[index % posts.length] ?? { door: 'direct', client: 'pg' }
    child.removeAllListeners('message')
    child.removeAllListeners('exit')
    child.on('message', (message: FromMember) => {
      if (message.kind === 'progress') member.counts = message.counts
      if (message.kind === 'stopped') {
        member.stopped = true
        member.spent = message.spent
      }
      if (message.kind === 'trouble') troubles.push(`${process}: ${message.text}`)
    })
    child.once('exit', (code, signal) => {
      if (!member.stopped && signal !== 'SIGKILL') {
        troubles.push(`${process} ended by itself with ${code ?? signal}`)
      }
    })
    send(child, {
      kind: 'work',
      orders: {
        process,
        index,
        url: doors[post.door],
        post,
        folder: options.folder,
        seed: options.seed,
        epoch,
        workloads: options.workloads,
        without: options.without ?? [],
        connections: options.connections ?? 6,
        pauseMs: options.pauseMs ?? 20,
      },
    })
    return member
  }
  const members = (await Promise.all(lives.map((_, index) => start(index)))) as Member[]
  /** Of those that were killed; nobody may begin to work when the others have stopped. */
  const replacing = new Set<Promise<void>>()
  const replace = async (which: number): Promise<void> => {
    const member = memberAt(which)
    await kill(member.child)
    past.push(member.counts)
    member.counts = {}
    const next = ending ? undefined : await start(which % size)
    if (next !== undefined) members[which % size] = next
  }
  const memberAt = (which: number): Member => members[which % size] as Member

  const stopOne = async (member: Member): Promise<void> => {
    if (!isAlive(member.child)) return
    // Whoever was paused and forgotten could not hear it.
    member.child.kill('SIGCONT')
    send(member.child, { kind: 'stop' })
    try {
      await waitUntil(
        'the process has stopped its work',
        async () => (member.stopped || !isAlive(member.child) ? true : undefined),
        { limitMs: stopMs, everyMs: 5 },
      )
      if (member.spent) await kill(member.child)
      else if (isAlive(member.child)) spares.giveBack(member.child)
    } catch {
      troubles.push(`process ${member.child.pid} did not stop within ${stopMs} ms`)
      await kill(member.child)
    }
  }
  let stopping: Promise<unknown> | undefined
  const crew: StartedCrew = {
    troubles,
    get pids() {
      return members.map(({ child }) => child.pid as number)
    },
    async killOne(which) {
      const replaced = replace(which)
      replacing.add(replaced)
      await replaced.finally(() => replacing.delete(replaced))
    },
    async jumpClock(which, byMs) {
      send(memberAt(which).child, { kind: 'clock', byMs })
    },
    async progress() {
      const sums: Record<string, number> = {}
      for (const counts of [...past, ...members.map((member) => member.counts)]) {
        for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count
      }
      return sums
    },
    async stop() {
      ending = true
      stopping ??= Promise.all(replacing).then(() => Promise.all(members.map(stopOne)))
      await stopping
    },
    async [Symbol.asyncDispose]() {
      ending = true
      await (stopping ?? Promise.all(replacing))
      if (stopping === undefined) await Promise.all(members.map(({ child }) => kill(child)))
      if (options.spares === undefined) await spares[Symbol.asyncDispose]()
    },
  }
  return crew
}

function send(child: ChildProcess, message: ToMember): void {
  if (child.connected) child.send(message, () => undefined)
}
