import { readyMessage, writeError } from '../wire/backend.ts'
import { concatBytes } from './concat.ts'
import type { Piece } from './piece.ts'

/**
 * Answers in the name of a session that is over. Whoever still uses it learns of that by an error and
 * can give the connection back, instead of losing it under its hands, which a client without a
 * listener for errors would not survive.
 */
export interface Obituary {
  /** The answer to a piece; undefined if none is due, or if the client says goodbye. */
  answer(piece: Pick<Piece, 'kind'>): Buffer | undefined
}

const error = writeError(
  new Map([
    ['S', 'ERROR'],
    ['V', 'ERROR'],
    ['C', '57P01'],
    ['M', 'the run that this session belonged to is over'],
  ]),
)

export function createObituary(): Obituary {
  // After an error nothing is answered up to the next Sync.
  let skipping = false
  return {
    answer({ kind }) {
      if (kind === 'terminate') return undefined
      const parts = skipping ? [] : [error]
      skipping = kind === 'flush' || kind === 'part'
      if (!skipping) parts.push(readyMessage)
      return parts.length > 0 ? concatBytes(parts) : undefined
    },
  }
}
