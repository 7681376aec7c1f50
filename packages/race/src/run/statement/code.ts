import type { Touch } from '../../core/model.ts'

/** What a statement inside of another touches; undefined if its text does not tell. */
export type Part = readonly Touch[] | undefined

/** What code runs, to whoever calls it. */
export interface Code {
  /** One after the other, each with a snapshot of its own. */
  readonly parts: readonly Part[]
  /** Under the snapshot of the statement that calls it. */
  readonly under: Part
  /** It goes on after errors: what was undone then has no locks any more that would tell of it. */
  readonly catches: boolean
  /** It may leave something in its session: a setting, a temporary table, a lock, or nobody knows what. */
  readonly leaves: boolean
}

export const nothing: Code = { parts: [], under: [], catches: false, leaves: false }

export const mayBeAnything: Code = {
  parts: [undefined, undefined],
  under: [],
  catches: true,
  leaves: true,
}

export function merged(parts: readonly Part[]): Part {
  return parts.includes(undefined) ? undefined : parts.flatMap((part) => part ?? [])
}

export function joined(codes: readonly Code[]): Code {
  return {
    parts: codes.flatMap(({ parts }) => parts),
    under: merged(codes.map(({ under }) => under)),
    catches: codes.some(({ catches }) => catches),
    leaves: codes.some(({ leaves }) => leaves),
  }
}

export function touchesAny(part: Part): boolean {
  return part === undefined || part.length > 0
}
