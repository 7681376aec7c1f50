/** Which pairs of calls can meet, the likely ones first. Calls of one name are one row of the matrix. */
import { type Meeting, meetingOf } from './conflicts.ts'
import type { Call } from '../model.ts'
import { type Profile, sameShape } from './profile.ts'

/** Calls of one name that are looked at: of each way through the code, with different values. */
const mostAlike = 2

/** Two names, and the calls of them that meet. */
export interface Proposal {
  /** Names of the two calls. */
  readonly calls: readonly [string, string]
  /** The likely ones first. */
  readonly candidates: readonly (readonly [Profile, Profile, Meeting])[]
  readonly score: number
  readonly reasons: readonly string[]
}

export interface Proposed {
  readonly proposals: readonly Proposal[]
  /** Pairs that have nothing in common. */
  readonly apart: number
}

/**
 * One call for each way through the code and each two values; what came later in the recording is left out. One that was
 * accepted before the next of its name was refused stays too: a suite that has brought rows to a limit begins there.
 */
export function representatives(
  profiles: readonly Profile[],
  calls: readonly Call[] = profiles.map(({ call }) => call),
): readonly Profile[] {
  const kept: Profile[] = []
  const isLast = ({ call }: Profile): boolean => {
    const next = calls.find(({ name, number }) => name === call.name && number > call.number)
    return call.said === 'accepted' && next?.said === 'refused'
  }
  for (const profile of profiles) {
    const alike = kept.filter((one) => sameShape(one, profile))
    if (alike.length > 0 && isLast(profile) && !alike.some(isLast)) {
      kept.push(profile)
      continue
    }
    const isNew = alike.every(
      ({ call }) => JSON.stringify(call.input) !== JSON.stringify(profile.call.input),
    )
    if (isNew && alike.length < mostAlike) kept.push(profile)
  }
  return kept
}

export function propose(profiles: readonly Profile[]): Proposed {
  const names = [...new Set(profiles.map(({ call }) => call.name))]
  const of = Map.groupBy(profiles, ({ call }) => call.name)
  const proposals: Proposal[] = []
  let apart = 0
  for (const [at, name] of names.entries()) {
    for (const second of names.slice(at)) {
      const candidates = candidatesOf(of.get(name) ?? [], of.get(second) ?? [])
      const [best] = candidates
      if (best === undefined) apart += 1
      else {
        const { reasons, score } = best[2]
        const self = name === second ? 10 : 0
        proposals.push({ calls: [name, second], candidates, score: score + self, reasons })
      }
    }
  }
  return { proposals: proposals.toSorted((one, other) => other.score - one.score), apart }
}

function candidatesOf(
  some: readonly Profile[],
  others: readonly Profile[],
): Proposal['candidates'] {
  const found: (readonly [Profile, Profile, Meeting])[] = []
  for (const [at, one] of some.entries()) {
    for (const other of some === others ? some.slice(at) : others) {
      // Two that were refused have shown no way to be accepted.
      if (one.call.said === 'refused' && other.call.said === 'refused') continue
      const meeting = meetingOf(one, other)
      if (meeting) found.push([one, other, meeting])
    }
  }
  return found.toSorted(([, , one], [, , other]) => pointsOf(other) - pointsOf(one))
}

function pointsOf({ by, score }: Meeting): number {
  return score + (by === 'rows' ? 5 : 0)
}
