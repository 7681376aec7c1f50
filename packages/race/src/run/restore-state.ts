/** `state: 'restore'` from the beginning of an exploration to its end, or to the signal that stops it. */
import { setTimeout } from 'node:timers/promises'
import { connectControl, type Control } from './control.ts'
import { forget, keep, settleLeftover } from './kept-snapshot.ts'
import { onSignal } from './on-signal.ts'
import { putBack, takeSnapshot } from './snapshot.ts'
import { takeDatabase } from './turn.ts'
import { GivenUp, type Watch } from './watch.ts'

export interface RestoreState {
  /** Puts back what has changed. */
  restore(): Promise<void>
  /** The same for the last time; the snapshot is forgotten then. */
  close(): Promise<void>
  /** Rejects when a signal has stopped the exploration, and the program goes on. */
  readonly stopped: Promise<never>
  /** A signal has come, and what the flows do is of no interest any more. */
  readonly isStopping: boolean
}

/** How long others may stand in the way of a process that is told to end. */
const rescueMs = 5000

/** `leave` closes the flows' ways to the database for good, and tells which sessions are left. */
export async function openRestoreState(
  url: string,
  control: Control,
  watch: Watch,
  patienceMs: number,
  leave: () => readonly number[],
): Promise<RestoreState> {
  await settleLeftover(control.client)
  const saved = await watch.over({
    name: 'The snapshot',
    do: () => takeSnapshot(control.client),
  })
  await keep(control.client, saved)
  const stopped = Promise.withResolvers<never>()
  stopped.promise.catch(() => undefined)
  let stopping = false

  /** On a connection of its own: whatever the others do at this moment, they are ended first. */
  async function rescue(): Promise<void> {
    stopping = true
    const own = await connectControl(url)
    try {
      await own.query(`SET lock_timeout = ${rescueMs}`)
      await endSessions(own, [control.pid, ...leave()])
      await takeDatabase(own, rescueMs)
      await putBack(own.client, saved)
      await forget(own.client)
    } finally {
      await own.close()
    }
  }

  const listening = onSignal(rescue, (signal) =>
    stopped.reject(new Error(`explore() was stopped by ${signal}`)),
  )

  async function close(): Promise<void> {
    if (stopping) return
    try {
      const last = { name: 'The restore', do: () => putBack(control.client, saved), patienceMs }
      await watch.over(last)
    } catch (error) {
      if (stopping) return
      if (!(error instanceof GivenUp)) throw error
      throw new Error(
        `state: 'restore' could not put the rows back. ${error.message} The next exploration with state: 'restore' says how to put them back.`,
      )
    } finally {
      listening[Symbol.dispose]()
    }
    await forget(control.client)
  }

  return {
    restore: () => watch.over({ name: 'The restore', do: () => putBack(control.client, saved) }),
    close,
    stopped: stopped.promise,
    get isStopping() {
      return stopping
    },
  }
}

/** Until they are gone, they hold their locks. */
async function endSessions(own: Control, pids: readonly number[]): Promise<void> {
  await own.terminate(pids)
  const deadline = performance.now() + rescueMs
  while ((await own.waits(pids)).length > 0 && performance.now() < deadline) await setTimeout(10)
}
