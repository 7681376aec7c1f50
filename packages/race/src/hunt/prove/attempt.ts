/** Runs a call once, from given rows, with nobody beside it. */
import type { Said } from '../../core/model.ts'
import { sqlstateOf } from '../../run/answer/error-layers.ts'
import { type Classify, type FlowEnd, saidBy, saidByError } from '../../run/answer/said.ts'
import type { Input, Send } from '../model.ts'

/** What an answer or an error says: by the user's own word, else as the explorer reads it. */
export function sayOf(classify: Classify | undefined): (end: FlowEnd) => Said {
  return (end) => {
    const told = classify?.(end)
    if (told !== undefined) return told
    if ('answer' in end) return saidBy(end.answer)
    return end.error instanceof Error
      ? saidByError(end.error, sqlstateOf(end.error))
      : saidBy(end.error)
  }
}

/** How a call ended, and what came back. */
export interface Tried {
  readonly said: Said
  /** Undefined if it threw. */
  readonly answer?: unknown
}

export type Attempt = (send: Send, input: Input) => Promise<Tried>

export function createAttempt(say: (end: FlowEnd) => Said): Attempt {
  return async (send, input) => {
    try {
      const answer = await send(input)
      return { said: say({ answer }), answer }
    } catch (error) {
      return { said: say({ error }) }
    }
  }
}
