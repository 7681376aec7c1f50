import { type Deferred, deferred } from './deferred.ts'

/** Call it to arrive; it resolves when everyone has arrived. */
export type Barrier = () => Promise<void>

/**
 * Holds callers back until `parties` of them have arrived, then releases all at once.
 * It resets itself, so one barrier serves every round of a loop.
 */
export function barrier(parties: number): Barrier {
  if (!Number.isInteger(parties) || parties < 1) {
    throw new RangeError(`a barrier needs a whole number of parties, at least 1, not ${parties}`)
  }
  let round: Deferred<void> = deferred()
  let arrived = 0
  return () => {
    const current = round
    arrived += 1
    if (arrived === parties) {
      // Reset before releasing: a released caller may arrive for the next round at once.
      round = deferred()
      arrived = 0
      current.resolve()
    }
    return current.promise
  }
}
