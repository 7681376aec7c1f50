/** What a hunt takes for granted of answers, and says. */
import { list } from '../../report/words.ts'
import { writesAny } from '../propose/conflicts.ts'
import type { Call } from '../model.ts'
import { type Profile, sameShape } from '../propose/profile.ts'
import type { Refusals } from './refusals.ts'
import type { Known } from '../prove/trials.ts'

type KnownOf = ReadonlyMap<Profile, Known>

const howToSay = `--refused 'ok=false', or refused: ['ok=false'] of hunt()`

/** What was taken for a refusal, although nobody has said that it is one. */
export function learnedNotes({ learned }: Pick<Refusals, 'learned'>): string[] {
  return [...learned].map(
    ([call, { text }]) =>
      `${call}: answers with ${text} were taken for refusals, because such a call changed no row. If they are none, say what a refusal is: ${howToSay}`,
  )
}

/** What a refutation takes for granted; undefined if each of these calls was refused somewhere, or only reads. */
export function assumedOf(
  profiles: readonly Profile[],
  known: KnownOf,
  calls: readonly Pick<Call, 'name' | 'said'>[],
): string | undefined {
  const texts = unlimited(known).flatMap(([profile, how]) => {
    if (!profiles.includes(profile)) return []
    const { name } = profile.call
    const wasRefused = calls.some((call) => call.name === name && call.said === 'refused')
    const when = wasRefused
      ? 'refused in the recording, and never when it was repeated'
      : 'never refused'
    return [`${name} was ${when} (${how})`]
  })
  if (texts.length === 0) return undefined
  return `${[...new Set(texts)].join('; ')}, and all its answers were taken for successes`
}

/** The same of all calls, in one sentence. */
export function assumedNotes(known: KnownOf): string[] {
  const names = [...new Set(unlimited(known).map(([{ call }]) => call.name))]
  if (names.length === 0) return []
  return [
    `no limit was found of ${list(names)}: as often as each was called, no answer was a refusal. "Refuted" holds if that is true; if an answer says no with a status of 2xx, say which: ${howToSay}`,
  ]
}

/** What to do about a pair that is undecided for what functions and triggers run inside, and nothing else. */
export const atomicNext = "In a hunt, that is --functions atomic, or functions: 'atomic' of hunt()."

/** Of the pairs that are refuted only if functions and triggers are as one statement. */
export function atomicNotes(names: readonly string[]): string[] {
  if (names.length === 0) return []
  return [
    `functions: 'atomic': what functions and triggers run counted as one statement, as if it was proven in another way. "Refuted" holds only if that is true for ${list(names)}`,
  ]
}

/** Calls that were accepted as often as they were made, and how often that was. What only reads has no limit. */
function unlimited(known: KnownOf): (readonly [Profile, string])[] {
  return [...known].flatMap(([profile, { gaveUp }]): (readonly [Profile, string])[] =>
    gaveUp === undefined || !writesAny(profile) || hasLimit(profile, known)
      ? []
      : [[profile, gaveUp]],
  )
}

/** Whether a call that goes the same way has met its limit from other rows. */
function hasLimit(profile: Profile, known: KnownOf): boolean {
  return [...known].some(([one, { gaveUp }]) => gaveUp === undefined && sameShape(one, profile))
}
