/** The races that a project knows of, kept in a file, so that a build fails only of new ones. */
import { readJson } from '../../core/read-json.ts'
import type { HuntedPair, HuntReport } from '../model.ts'
import { type Race, racesOf } from './races.ts'

/** A race as a baseline knows it: nothing in it changes from one hunt to the next. */
interface KnownRace {
  /** `POST /coupons/redeem × itself` */
  readonly pair: string
  /** `lost update`. Another race of the same pair is new. */
  readonly anomaly: string
}

interface Baseline {
  readonly format: 1
  readonly races: readonly KnownRace[]
}

/** The proven races of a hunt, as the text of a file that `newRaces` compares with. */
export function huntBaseline(report: HuntReport): string {
  const races = racesOf(report)
    .map(knownOf)
    .toSorted(
      (one, other) =>
        one.pair.localeCompare(other.pair, 'en') || one.anomaly.localeCompare(other.anomaly, 'en'),
    )
  return `${JSON.stringify({ format: 1, races } satisfies Baseline, null, 2)}\n`
}

/**
 * The proven pairs that the baseline does not have. Of a race that is gone it says nothing: a hunt that had less time
 * does not find all.
 *
 * @throws Error for a text that `huntBaseline` has not made
 */
export function newRaces(report: HuntReport, baseline: string): readonly HuntedPair[] {
  const known = new Set(read(baseline).map(nameOf))
  return racesOf(report)
    .filter((race) => !known.has(nameOf(knownOf(race))))
    .map(({ pair }) => pair)
}

function knownOf({ pair, explanation }: Race): KnownRace {
  return { pair: pair.name, anomaly: explanation.anomaly }
}

function nameOf({ pair, anomaly }: KnownRace): string {
  return JSON.stringify([pair, anomaly])
}

function read(text: string): readonly KnownRace[] {
  const { format, races } = (readJson(text) ?? {}) as Partial<Baseline>
  const isList = Array.isArray(races) && races.every((race) => isKnown(race))
  if (format === 1 && isList) return races as readonly KnownRace[]
  throw new Error('newRaces() needs the text of a baseline; huntBaseline(report) makes one')
}

function isKnown(race: unknown): boolean {
  const { pair, anomaly } = (race ?? {}) as Partial<KnownRace>
  return typeof pair === 'string' && typeof anomaly === 'string'
}
