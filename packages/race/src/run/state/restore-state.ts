/** `state: 'restore'` from the beginning of an exploration to its end, or to the signal that stops it. */
import { setTimeout } from 'node:timers/promises'
import { connectControl, type Control } from '../connection/control.ts'
import { forget, keep, settleLeftover, wayBack } from './kept-snapshot.ts'
import { onSignal } from './on-signal.ts'
import { RestoreError } from './restore-error.ts'
import { putBack, takeSnapshot, tryPutBack } from './snapshot.ts'
import { takeDatabase } from '../connection/turn.ts'
import { GivenUp, type Watch } from '../connection/watch.ts'

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

/** Who puts rows back, and what is to be done if they cannot be. */
export interface RestoreWords {
  readonly who: string
  readonly instead: string
}

const ofExplorer: RestoreWords = {
  who: `state: 'restore'`,
  instead: `Use state: 'clone', or write a seed.`,
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
  { who, instead }: RestoreWords = ofExplorer,
): Promise<RestoreState> {
  await settleLeftover(control.client)
  function refuse(error: unknown): never {
    if (!(error instanceof RestoreError)) throw error
    const { message, table, constraint } = error
    throw new RestoreError(
      `${who}: ${message}. Nothing was changed. ${instead}`,
      table,
      constraint,
      error,
    )
  }
  const saved = await watch
    .over({ name: 'The snapshot', do: () => takeSnapshot(control.client) })
    .catch(refuse)
  // Rows that cannot be put back are told before anything happens to them.
  await watch
    .over({ name: 'The trial of the restore', do: () => tryPutBack(control.client, saved) })
    .catch(refuse)
  const isKept = await keep(control.client, saved)
  const stopped = Promise.withResolvers<never>()
  stopped.promise.catch(() => undefined)
  let stopping = false
  /** Whoever explores knows that rows are missing. */
  let told = false

  /** Nothing was put back then: tables are as the flows have left them. */
  function failed(error: unknown): never {
    if (!(error instanceof RestoreError)) throw error
    told = true
    const { message, table, constraint } = error
    const rest = isKept ? ` ${wayBack(error)}` : ''
    throw new RestoreError(`${who}: ${message}.${rest}`, table, constraint, error)
  }

  /** On a connection of its own: whatever the others do at this moment, they are ended first. */
  async function rescue(): Promise<void> {
    stopping = true
    const own = await connectControl(url)
    try {
      await own.query(`SET lock_timeout = ${rescueMs}`)
      const ended = [control.pid, ...leave()].filter((pid) => pid !== own.pid)
      await endSessions(own, ended)
      await takeDatabase(own, rescueMs)
      await putBack(own.client, saved).catch(failed)
      await forget(own.client)
    } finally {
      await own.close()
    }
  }

  const restoreAll = (): Promise<void> => putBack(control.client, saved).catch(failed)

  const listening = onSignal(rescue, (signal) =>
    stopped.reject(new Error(`explore() was stopped by ${signal}`)),
  )

  async function close(): Promise<void> {
    if (stopping) return
    const isKnown = told
    try {
      await watch.over({ name: 'The restore', do: restoreAll, patienceMs })
    } catch (error) {
      if (stopping || (isKnown && error instanceof RestoreError)) return
      if (!(error instanceof GivenUp)) throw error
      throw new Error(
        `${who} could not put the rows back. ${error.message} The next one says how to put them back.`,
      )
    } finally {
      listening[Symbol.dispose]()
    }
    await forget(control.client)
  }

  return {
    restore: () => watch.over({ name: 'The restore', do: restoreAll }),
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
