import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { FromMember, ToMember } from './team-member.ts'

/** Processes that work in step with this one. */
export interface Team<Order, Result> extends AsyncDisposable {
  /**
   * One round: every member gets ready, and only when all are does any begin. Gives what each of
   * them reports.
   */
  round(order: Order): Promise<Result[]>
}

/** Starts `size` processes of the program `member`, which calls `joinTeam`. */
export async function startTeam<Setup, Order, Result>(
  member: URL,
  size: number,
  setup: Setup,
): Promise<Team<Order, Result>> {
  const processes = Array.from({ length: size }, (_, index) =>
    fork(member, [String(index)], { stdio: 'inherit' }),
  )
  const stop = async (): Promise<void> => {
    await Promise.all(processes.map(leave))
  }
  const all = async <K extends FromMember<Result>['kind']>(
    message: ToMember<Setup, Order>,
    kind: K,
  ): Promise<Extract<FromMember<Result>, { kind: K }>[]> =>
    await Promise.all(processes.map((child) => ask<Result, K>(child, message, kind)))
  try {
    await all({ kind: 'set up', setup }, 'set up')
  } catch (error) {
    await stop()
    throw error
  }
  return {
    async round(order) {
      await all({ kind: 'get ready', order }, 'ready')
      return (await all({ kind: 'go' }, 'done')).map(({ result }) => result)
    },
    [Symbol.asyncDispose]: stop,
  }
}

/** Sends a message and gives the answer, which must be of the kind asked for. */
async function ask<Result, K extends FromMember<Result>['kind']>(
  child: ChildProcess,
  message: ToMember<unknown, unknown>,
  kind: K,
): Promise<Extract<FromMember<Result>, { kind: K }>> {
  return await new Promise((resolve, reject) => {
    const onMessage = (answer: FromMember<Result>): void => {
      child.off('exit', onExit)
      if (answer.kind === kind) resolve(answer as Extract<FromMember<Result>, { kind: K }>)
      else reject(new Error(answer.kind === 'failed' ? answer.reason : `answered ${answer.kind}`))
    }
    const onExit = (code: number | null): void => {
      child.off('message', onMessage)
      reject(new Error(`a process of the team ended with ${code}`))
    }
    child.once('message', onMessage)
    child.once('exit', onExit)
    child.send(message)
  })
}

/** A member leaves when its channel closes. */
async function leave(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  if (child.connected) child.disconnect()
  await exited
}
