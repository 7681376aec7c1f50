/** One call after the other, with the rows before each. */
import { times } from '../../report/words.ts'
import type { Saved } from '../../run/state/snapshot.ts'

/** How long a call waits for the one before it. Longer is one that was made from inside of that one. */
const patienceMs = 2_000

/** A call that was written down. */
export type Numbered<M> = M & { readonly number: number; readonly before: Saved }

export interface Turns<M> {
  readonly calls: readonly Numbered<M>[]
  /** Calls that were made while another was under way, and are in no pair. */
  readonly overlapping: number
  /** Calls that came when as many were kept as are to be. */
  readonly beyond: number
  readonly most: number
  /** Undefined if the one before does not end. */
  begin(): Promise<{ end(made: M | undefined): void } | undefined>
}

/** `take` reads all rows; of the calls after the first so many nothing is kept. */
export function createTurns<M extends object>(take: () => Promise<Saved>, most: number): Turns<M> {
  const calls: Numbered<M>[] = []
  let under: Promise<void> | undefined
  let overlapping = 0
  let beyond = 0

  async function takeTurn(): Promise<(() => void) | undefined> {
    const deadline = performance.now() + patienceMs
    while (under !== undefined) {
      const left = deadline - performance.now()
      if (left <= 0) return undefined
      await ended(under, left)
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    under = promise
    return () => {
      under = undefined
      resolve()
    }
  }

  return {
    calls,
    get overlapping() {
      return overlapping
    },
    get beyond() {
      return beyond
    },
    most,
    async begin() {
      const done = await takeTurn()
      if (done === undefined) {
        overlapping += 1
        return undefined
      }
      try {
        const before = calls.length < most ? await take() : undefined
        return {
          end(made) {
            if (before && made) calls.push({ ...made, number: calls.length + 1, before })
            else if (made) beyond += 1
            done()
          },
        }
      } catch (error) {
        done()
        throw error
      }
    },
  }
}

/** What a report says of calls that were not written down. */
export function turnNotes({
  overlapping,
  beyond,
  most,
}: Pick<Turns<object>, 'overlapping' | 'beyond' | 'most'>): string[] {
  return [
    ...(overlapping === 0
      ? []
      : [`${overlapping} calls were made while another was under way, and are in no pair`]),
    ...(beyond === 0
      ? []
      : [`${times(beyond, 'call')} came after the first ${most}, and only these are kept`]),
  ]
}

async function ended(one: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([one, late])
  clearTimeout(timer)
}
