/** The words of the hunt: calls that were recorded, pairs of them, and what became of each pair. */
import type { Place, Report, Said } from '../core/model.ts'
import type { Patch } from '../report/fix/patch.ts'
import type { NamedRows } from '../run/state/named-rows.ts'
import type { Saved } from '../run/state/snapshot.ts'
import type { Heard } from './record/heard.ts'

/** What is sent to the application: a request, or the arguments of a function. Plain data. */
export type Input = HttpInput | ArgumentsInput

/** A request, as it is sent again. */
export interface HttpInput {
  readonly kind: 'http'
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Without those that belong to the connection. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | undefined
}

/** The arguments of a function that the suite named by `call()`. */
export interface ArgumentsInput {
  readonly kind: 'arguments'
  readonly values: readonly unknown[]
}

/** How something is called again: with what was recorded, or with something near it. */
export type Send = (input: Input) => Promise<unknown>

/** One call of the application, as it was recorded. */
export interface Call {
  /** In the order of the recording; the first is 1. */
  readonly number: number
  /** `POST /shows/:n/book`, or the name given to `call()`. Calls of one name do the same with other values. */
  readonly name: string
  readonly input: Input
  /** What came back, or what was thrown. */
  readonly answer: unknown
  readonly said: Said
  /** All rows before it. */
  readonly before: Saved
  /** Variables of the environment that were other ones when it was recorded. */
  readonly differing?: readonly string[]
  /** Databases that it was recorded with, if that of the hunt is not among them. */
  readonly others?: readonly string[]
  readonly send: Send
}

/** What is to be run at once, from which rows, with which inputs. */
export interface Trial {
  readonly state: Saved
  readonly inputs: readonly [Input, Input]
  /** For people: `the rows after it ran 5 times`. */
  readonly from: string
}

/**
 * `proven`: a schedule whose end no serial order gives, replayed with the same end. `refuted`: every order that can
 * differ was run. `undecided`: see `because`. `not looked at`: the time was over.
 */
export type PairVerdict = 'proven' | 'refuted' | 'undecided' | 'not looked at'

/** Why something was not looked at, unless somebody wanted it so. */
export const timeOver = 'the time was over'

/** A pair of calls, and what became of it. */
export interface HuntedPair {
  /** `POST /coupons/redeem × itself`. */
  readonly name: string
  /** Names of the two calls. */
  readonly calls: readonly [string, string]
  /** Numbers of the recorded calls. */
  readonly numbers: readonly [number, number]
  readonly verdict: PairVerdict
  /** Proven: what is wrong, in one sentence. */
  readonly sentence?: string
  /** Why it is undecided, or was not looked at. */
  readonly because?: string
  /** Refuted: what was taken for granted, where a call was never refused, or a function counts as one statement. */
  readonly assumed?: string
  /** From which rows it was explored; of a proven one, the rows of the proof alone. */
  readonly from: readonly string[]
  /** Proven: what was sent, without secrets. */
  readonly inputs?: readonly [Input, Input]
  /** Proven: replays the schedule. */
  readonly token?: string
  /** Proven: lines of the code whose statements are in the schedule. */
  readonly places?: readonly Place[]
  /** Proven: the fix as a diff, where it is the change of one statement that was found in the code. */
  readonly patch?: Patch
  /** What makes the pair likely or unlikely, in words. */
  readonly reasons: readonly string[]
  /** Proven: what a test of it needs beside the inputs; see `huntTests`. */
  readonly again?: Again
  /** Proven: all of it, for `formatReport`, `htmlReport` and `jsonReport`. */
  readonly report?: Report
  /** Orders that were run. */
  readonly runs: number
}

/** From where a proof begins, as a file may have it: what looks like a secret is something else. Plain data. */
export interface Again {
  readonly rows: NamedRows
  /** What is sent, with what stands in the rows in the place of secrets. */
  readonly inputs: readonly Input[]
  /** What is wrong, in one sentence. */
  readonly sentence: string
  /** Secret headers that go with the rows, where these know them. */
  readonly secrets: Readonly<Record<string, string>>
  /** Columns whose values are not written down: `public.users.password`. */
  readonly disguised: readonly string[]
  /** What other machines have answered in it, without secrets. */
  readonly heard: readonly Heard[]
  /** Which answers are refusals, by the names of the calls, where no status says so: `ok=false`. */
  readonly refused: Readonly<Record<string, readonly string[]>>
  /** As in the hunt. */
  readonly functions: 'open' | 'atomic'
}

/** A recorded call, for people. */
export interface HuntedCall {
  readonly number: number
  readonly name: string
  readonly said: Said
  /** Statements that it sent when it was run alone. */
  readonly statements: number
  /** Why it can be in no pair, if that is so. */
  readonly unusable?: string
}

/** What a hunt has found, and what it has not looked at. */
export interface HuntReport {
  readonly calls: readonly HuntedCall[]
  /** The likely ones first. */
  readonly pairs: readonly HuntedPair[]
  /** Pairs that have nothing in common in the database, which are none. */
  readonly apart: number
  /** Whether functions and triggers counted as one statement each: `functions` of `hunt()`. */
  readonly functions: 'open' | 'atomic'
  readonly notes: readonly string[]
  readonly server: string
  readonly milliseconds: number
}

/** How far a hunt is. */
export interface HuntProgress {
  readonly phase: 'record' | 'look' | 'prove'
  readonly done: number
  readonly of: number
  readonly proven: number
}
