/** Runs what is called as one call, whoever writes it down. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Said } from '../../core/model.ts'
import type { Input, Send } from '../model.ts'

/** What a call is known by before it is made. */
export interface Known {
  readonly name: string
  readonly input: Input
  readonly send: Send
}

/** How a call ended. */
export interface Ended {
  readonly answer: unknown
  readonly said: Said
}

/** A call that is over. */
export type Made = Known & Ended

/** The right to be the one call that is under way. */
export interface Turn {
  /** Gives it back, with what was called; undefined if nothing is known of it. */
  end(made: Made | undefined): void
}

export interface Recorder {
  /** Whether what runs at this moment is part of a call. */
  isWithin(): boolean
  /** Runs it as one call, unless it is part of one. `known` is asked when it is over. */
  around<T>(
    known: () => Known,
    work: () => Promise<T>,
    ends: { answered(answer: T): Ended; threw(error: unknown): Ended },
  ): Promise<T>
}

/** `begin` resolves when nobody else is under way; to undefined if the call is not to be written down. */
export function createRecorder(begin: () => Promise<Turn | undefined>): Recorder {
  const within = new AsyncLocalStorage<true>()
  return {
    isWithin: () => within.getStore() === true,
    async around(known, work, ends) {
      if (within.getStore() === true) return work()
      const turn = await begin()
      if (turn === undefined) return work()
      let made: Made | undefined
      try {
        const answer = await within.run(true, work)
        made = { ...known(), ...ends.answered(answer) }
        return answer
      } catch (error) {
        made = { ...known(), ...ends.threw(error) }
        throw error
      } finally {
        turn.end(made)
      }
    },
  }
}
