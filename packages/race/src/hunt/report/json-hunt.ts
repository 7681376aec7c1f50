import { explainRace } from '../../report/explain-race.ts'
import type { Patch } from '../../report/fix/patch.ts'
import { placeText } from '../../report/words.ts'
import type { HuntedCall, HuntReport, Input, PairVerdict } from '../model.ts'

/** A hunt as data for other programs. What is here stays; more may be added. */
export interface JsonHunt {
  readonly format: 1
  readonly server: string
  readonly milliseconds: number
  readonly calls: readonly HuntedCall[]
  readonly pairs: readonly JsonPair[]
  readonly apart: number
  readonly functions: 'open' | 'atomic'
  readonly notes: readonly string[]
}

/** One pair. What is missing does not hold of its verdict. */
export interface JsonPair {
  readonly name: string
  readonly calls: readonly [string, string]
  readonly numbers: readonly [number, number]
  readonly verdict: PairVerdict
  readonly reasons: readonly string[]
  readonly from: readonly string[]
  readonly runs: number
  readonly because?: string
  readonly assumed?: string
  readonly sentence?: string
  readonly anomaly?: string
  /** Ways out, the one to try first at the front. */
  readonly fixes?: readonly string[]
  /** The first of them that is a diff of the code. */
  readonly patch?: Patch
  readonly token?: string
  /** `src/coupons.ts:12` */
  readonly places?: readonly string[]
  /** What was sent, without secrets. */
  readonly inputs?: readonly [Input, Input]
}

/** The report as JSON text. Secrets of headers and fields are not in it; other values of inputs and rows are. */
export function jsonHunt(report: HuntReport): string {
  const { server, milliseconds, calls, pairs, apart, functions, notes } = report
  const data: JsonHunt = {
    format: 1,
    server,
    milliseconds,
    calls,
    pairs: pairs.map((one): JsonPair => {
      const { report: whole, places, again: _, ...pair } = one
      const why = whole && explainRace(whole)
      return {
        ...pair,
        ...(places && { places: places.map(placeText) }),
        ...(why && {
          anomaly: why.anomaly,
          fixes: why.fixes.map(({ text, code }) =>
            code === undefined ? text : `${text}: ${code}`,
          ),
        }),
      }
    }),
    apart,
    functions,
    notes,
  }
  return `${JSON.stringify(data, null, 2)}\n`
}
