/** The rows of the whole database: taken, put back, and as they were before in the end. */
import { createRest } from '../run/state/at-rest.ts'
import { type Control, controlPids } from '../run/connection/control.ts'
import { exactly } from '../run/state/exact-seed.ts'
import type { DatabaseContext } from '../run/options.ts'
import { openRestoreState } from '../run/state/restore-state.ts'
import { sharedConnections } from '../run/connection/shared-connections.ts'
import {
  type Asking,
  type Named,
  putBack,
  type Saved,
  takeSnapshot,
} from '../run/state/snapshot.ts'
import { createWatch } from '../run/connection/watch.ts'
import { named, openDatabase } from './open-database.ts'

/** How long somebody else's lock may stand in the way at the end. */
const patienceMs = 5_000

export interface States extends AsyncDisposable {
  /** The hunt's own connection, which no gate keeps waiting. */
  readonly control: Control
  /** Waits for transactions of calls that have answered before their COMMIT, as the next two do. */
  rest(): Promise<void>
  take(): Promise<Saved>
  putBack(saved: Saved): Promise<void>
  /** Waits for it. If a signal stops the hunt, it rejects as soon as the rows are put back, whatever became of the work. */
  orStopped<T>(work: Promise<T>): Promise<T>
}

/** From now on the rows that are there are kept, in the database too, until they are put back. */
export async function openStates(url: string): Promise<States> {
  const control = await openDatabase(url)
  const watch = createWatch(url, control, patienceMs)
  const kept = await named(url, () =>
    openRestoreState(url, control, watch, patienceMs, leaveAll, words),
  ).catch(async (error: unknown) => {
    await control.close()
    throw error
  })
  const rest = createRest(control)
  let last: Saved | undefined
  return {
    control,
    rest,
    async orStopped(work) {
      try {
        return await Promise.race([work, kept.stopped])
      } catch (error) {
        // It has failed because its sessions were ended.
        if (kept.isStopping) return await kept.stopped
        throw error
      }
    },
    async take() {
      await rest()
      last = await watch.over({
        name: 'The look at the rows',
        do: () => takeSnapshot(control.client, last),
      })
      return last
    },
    async putBack(saved) {
      await rest()
      await watch.over({ name: 'The restore', do: () => putBack(control.client, saved) })
    },
    async [Symbol.asyncDispose]() {
      try {
        await kept.close()
      } finally {
        await control.close()
      }
    },
  }
}

const words = { who: 'hunt', instead: 'Use a database for tests without it.' }

/** Ends the ways to the database that the application and the explorer have, and tells whose sessions are left. */
function leaveAll(): number[] {
  const connections = [...sharedConnections]
  for (const connection of connections) {
    connection.freeze()
    connection.hangUp()
  }
  return [...connections.map(({ pid }) => pid), ...controlPids()]
}

/** A seed of `explore()` that puts these rows back. */
export function seedOf(saved: Saved): (database: DatabaseContext) => Promise<unknown> {
  const seed = ({ query }: DatabaseContext): Promise<void> => {
    // It is the runner's own connection, which takes named statements too.
    const own = query as (text: string | Named, values?: unknown[]) => Promise<unknown[]>
    const asking: Asking = {
      query: async <R extends object>(text: string | Named, values?: unknown[]) => ({
        rows: (await own(text, values)) as R[],
      }),
    }
    return putBack(asking, saved)
  }
  return exactly(
    seed,
    saved.tables.map(({ quoted }) => quoted),
  )
}
