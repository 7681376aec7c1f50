import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { SqliteJob } from './sqlite-jobs.ts'

/** What a process is asked to do. */
export interface ToMember {
  readonly job: SqliteJob
  /** What it is about in this round. */
  readonly about: string
  readonly seed: number
  readonly times: number
}

/** What it says when it has done it. */
export interface FromMember {
  readonly answers: readonly string[]
  /** What callers were told instead of being served. */
  readonly refused: readonly string[]
  readonly trouble?: string
}

/** Who is killed in a round, and when. */
export interface Kill {
  readonly member: number
  readonly afterMs: number
}

export interface RoundTold {
  readonly answers: readonly string[]
  readonly refused: readonly string[]
}

/** Processes that write to one file. */
export interface SqliteCrew extends AsyncDisposable {
  readonly killed: number
  /** All of them at once; one may be killed meanwhile, and is replaced. What the others have said. */
  round(wanted: ToMember, kill?: Kill): Promise<RoundTold>
  /** One of them alone. */
  one(wanted: ToMember): Promise<RoundTold>
}

const member = new URL('./sqlite-member.ts', import.meta.url)

export async function openSqliteCrew(path: string, size: number): Promise<SqliteCrew> {
  const open = async (): Promise<ChildProcess> => {
    const child = fork(member, [path], { stdio: 'inherit' })
    await once(child, 'message')
    return child
  }
  const all = await Promise.all(Array.from({ length: size }, open))
  let killed = 0
  return {
    get killed() {
      return killed
    },
    async round(wanted, kill) {
      const asked = all.map((child, at) => ask(child, { ...wanted, seed: wanted.seed + at }))
      if (kill !== undefined) {
        await pause(kill.afterMs)
        await end(all[kill.member] as ChildProcess)
        killed += 1
        all[kill.member] = await open()
      }
      const told = await Promise.all(asked)
      return {
        answers: told.flatMap(({ answers }) => answers),
        refused: told.flatMap(({ refused }) => refused),
      }
    },
    one: (wanted) => ask(all[0] as ChildProcess, wanted),
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map(end))
    },
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** Nothing from one that was killed before it could say so. */
async function ask(child: ChildProcess, message: ToMember): Promise<FromMember> {
  return await new Promise((resolve, reject) => {
    const onExit = (): void => {
      child.off('message', onMessage)
      resolve({ answers: [], refused: [] })
    }
    const onMessage = (told: FromMember): void => {
      child.off('exit', onExit)
      if (told.trouble === undefined) resolve(told)
      else reject(new Error(told.trouble))
    }
    child.once('exit', onExit)
    child.once('message', onMessage)
    child.send(message)
  })
}
