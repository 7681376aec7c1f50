import type { Place } from '../core/model.ts'
import type { Piece } from './piece.ts'
import type { Unit } from './unit.ts'

/** A piece with whoever has sent it. */
export type OwnedPiece = Piece & { readonly owner: unknown }

/**
 * Says of what comes from a client who has sent it, and from which line. A client asks for further rows, and ends a
 * cycle, by itself, when an answer arrives: then it is in nobody's code, or in somebody else's.
 */
export function createAttribution(
  ownerOf: (unit: Unit) => unknown,
  placeNow: () => Place | undefined,
): (piece: Piece) => OwnedPiece {
  /** Whose cycle is not over. */
  let cycle: { readonly owner: unknown } | undefined
  let last: Unit | undefined

  function located(sent: Unit): Unit {
    const isSame = sent.continues === true && last?.statements[0] === sent.statements[0]
    const from = placeNow() ?? (isSame ? last?.from : undefined)
    return from === undefined ? sent : (last = { ...sent, from })
  }

  return (piece) => {
    const by = cycle ?? { owner: ownerOf(piece.unit) }
    cycle = piece.kind === 'flush' ? by : undefined
    return { ...piece, ...by, unit: located(piece.unit) }
  }
}
