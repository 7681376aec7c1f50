import { setImmediate as turn } from 'node:timers/promises'
import type { Body } from './bodies-model.ts'

interface Running {
  readonly body: Body
  readonly number: number
}

/** Errors that nobody caught: outside of this program each of them ends the process. */
export interface Crashes extends Disposable {
  /** Whose body runs meanwhile is under suspicion. */
  during<T>(running: Running, run: () => Promise<T>): Promise<T>
  /** Bodies that ran while something was not caught, with what it was; the rarest first. */
  suspects(): readonly (Running & { readonly why: string })[]
  /** What was not caught since this was asked for the last time. */
  sinceLastLook(): Promise<string | undefined>
  notes(): readonly string[]
}

const mostSuspects = 60

export function watchCrashes(): Crashes {
  const running = new Set<Running>()
  const suspects: (Running & { readonly why: string })[] = []
  const counts = new Map<string, number>()
  let latest: string | undefined
  const onCrash = (error: unknown): void => {
    const why = String((error as Error | undefined)?.message ?? error).split('\n')[0] ?? ''
    latest = why
    const times = (counts.get(why) ?? 0) + 1
    counts.set(why, times)
    // The first few times tell as much as a thousand.
    if (times > 3) return
    for (const each of running) {
      if (suspects.length < mostSuspects) suspects.push({ ...each, why })
    }
  }
  process.on('uncaughtException', onCrash)
  process.on('unhandledRejection', onCrash)
  return {
    async during(body, run) {
      running.add(body)
      try {
        return await run()
      } finally {
        running.delete(body)
      }
    },
    suspects: () => suspects,
    async sinceLastLook() {
      // A rejection is known to be nobody's at the end of a turn.
      await turn()
      const seen = latest
      latest = undefined
      return seen
    },
    notes: () => [...counts].map(([why, times]) => `not caught by anybody, ${times} times: ${why}`),
    [Symbol.dispose]() {
      process.off('uncaughtException', onCrash)
      process.off('unhandledRejection', onCrash)
    },
  }
}
