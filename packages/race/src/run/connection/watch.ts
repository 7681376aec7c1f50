/** Watches what the explorer itself waits for: a lock of somebody else's must not stop it without a word. */
import type { Trouble } from '../../core/model.ts'
import { connectControl, type Control } from './control.ts'

/** Until here nobody looks: most work takes a few milliseconds, and a look costs the server a session. */
const firstLookMs = 1000
const nextLookMs = 200
/** How long somebody else may stand in the way. */
const foreignMs = 1000
/** How long work that was cancelled may take to come to its end. */
const lastWordsMs = 1000

/** The work was given up; `trouble` says why. */
export class GivenUp extends Error {
  readonly trouble: Trouble

  constructor(trouble: Trouble) {
    super(trouble.message)
    this.trouble = trouble
  }
}

export interface Limit {
  readonly ms: number
  readonly kind: Trouble['kind']
}

/** Work that is watched. */
export interface Work<T> {
  /** In a message: `The seed`. */
  readonly name: string
  do(): Promise<T>
  /** How long another session may stand in its way; default 1,000. */
  readonly patienceMs?: number
  /** Code of the user's, which may wait for anything: how long, while nothing happens in the database. */
  readonly limit?: Limit
}

export interface Watch {
  /** Does the work. @throws GivenUp if it waits for a lock that it does not get, or does not end */
  over<T>(work: Work<T>): Promise<T>
}

/** `control` does the work, or a client of the user's; `hangMs` is how long that one may wait for a lock. */
export function createWatch(url: string, control: Control, hangMs: number): Watch {
  async function over<T>(work: Work<T>): Promise<T> {
    const done = work.do()
    const settled = done.then(
      () => true,
      () => true,
    )
    let timer: NodeJS.Timeout | undefined
    const wait = (ms: number): Promise<boolean> => {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      timer = setTimeout(resolve, ms, false)
      return Promise.race([settled, promise])
    }
    const look = createLook(work)
    let observer: Control | undefined
    try {
      if (await wait(firstLookMs)) return await done
      do {
        // Without a connection to spare nobody can look; then it is as it was before.
        observer ??= await connectControl(url).catch(() => undefined)
        const trouble = observer && (await look(observer).catch(() => undefined))
        if (!observer || !trouble) continue
        const until = performance.now() + lastWordsMs
        do await observer.cancel(control.pid)
        while (!(await wait(nextLookMs)) && performance.now() < until)
        throw new GivenUp(trouble)
      } while (!(await wait(nextLookMs)))
      return await done
    } finally {
      clearTimeout(timer)
      await observer?.close().catch(() => undefined)
    }
  }

  /** Asked again and again while the work goes on; says why to give it up, when it is time. */
  function createLook<T>({ name, patienceMs = foreignMs, limit }: Work<T>) {
    const since = performance.now()
    const waiting = new Map<number, number>()
    return async (observer: Control): Promise<Trouble | undefined> => {
      const now = performance.now()
      const waits = (await observer.allWaits()).filter(({ blockers }) => blockers.length > 0)
      for (const pid of waiting.keys()) {
        if (!waits.some((one) => one.pid === pid)) waiting.delete(pid)
      }
      for (const { pid, blockers } of waits) {
        const from = waiting.get(pid) ?? now
        waiting.set(pid, from)
        const own = pid === control.pid
        if (now - from < (own ? patienceMs : Math.max(patienceMs, hangMs))) continue
        const who = own
          ? name
          : `While ${name.toLowerCase()} runs, ${await observer.describe([pid])}`
        return {
          kind: 'external-blocker',
          message: `${who} waits for a lock that another session holds: ${await observer.describe(blockers)}. End that session, or give the test a database of its own.`,
        }
      }
      if (!limit || now - since < limit.ms || (await observer.isBusy())) return undefined
      return {
        kind: limit.kind,
        message: `${name} did not end within ${limit.ms / 1000} s, and no statement is under way. Check what it waits for; if it needs more time, raise budget.ms.`,
      }
    }
  }

  return { over }
}
