/** Options in, report out: the suite is recorded, and its calls are hunted in. */
import {
  aFunction,
  aNumber,
  assertForm,
  assertOptions,
  aText,
  isListOfTexts,
  type KnownOptions,
  oneOf,
} from '../core/known-options.ts'
import type { Classify } from '../run/answer/said.ts'
import { databaseUrl } from '../run/connection/url.ts'
import { sayOf } from './prove/attempt.ts'
import { huntCalls, type HuntParts } from './hunt-calls.ts'
import type { HuntProgress, HuntReport } from './model.ts'
import { type App, openRecording, type Suite } from './record/open-recording.ts'
import { createRefusals, refusalRule } from './edges/refusals.ts'
import { openStates } from './states.ts'

/** What to hunt in, and for how long. */
export interface HuntOptions {
  /** A database for tests, directly and not through a pooler. Its rows are put back in the end. */
  readonly url: string | undefined
  /** What answers the requests of the suite; not needed if the suite starts its servers itself, in this process. */
  readonly app?: App
  /** Runs once, as it is: its requests, and its `call()`s, are what is hunted in. */
  readonly suite: Suite
  /**
   * Requests to other machines. `recorded` (default): they are sent once, in the recording, and what was answered then is
   * the answer from then on; those that are not made by `fetch` fail. `send`: they are sent every time.
   */
  readonly elsewhere?: 'recorded' | 'send'
  /** What an answer or an error says; see `explore()`. */
  readonly outcome?: Classify
  /**
   * Answers that say no with a status of 2xx, by a path into their JSON: `ok=false`, `error.code=FULL`, or `error` for those
   * that have one. Without it, what differs when a call is repeated and changes no row is taken for a refusal.
   */
  readonly refused?: readonly string[]
  /**
   * `open` (default): others can act between the statements that a function, a trigger or a DO block runs, and a pair for
   * which that can matter is `undecided`. `atomic`: each counts as one statement, as for code that is proven in another way;
   * `assumed` of a refuted pair names them.
   */
  readonly functions?: 'open' | 'atomic'
  readonly budget?: {
    /** Time for all of it; default 180,000. What was not looked at by then is listed. */
    readonly ms?: number
    /** Time for one exploration; default 10,000. */
    readonly pairMs?: number
    /** Calls that are kept of the suite; default 300. */
    readonly calls?: number
  }
  /** Told before every step. */
  readonly onProgress?: (progress: HuntProgress) => void
}

/** A hunt that consists of these parts. */
export async function runHunt(parts: HuntParts, options: HuntOptions): Promise<HuntReport> {
  assertOptions(options, huntOptions)
  assertForm(options.suite, aFunction, 'suite')
  const began = performance.now()
  const url = databaseUrl('hunt()', options.url)
  const { app, suite, outcome, refused, budget = {}, onProgress } = options
  const { elsewhere = 'recorded', functions = 'open' } = options
  const refusals = createRefusals(outcome, refused?.map(refusalRule))
  const progress = onProgress ?? ((): void => undefined)
  await using states = await openStates(url)
  progress({ phase: 'record', done: 0, of: 1, proven: 0 })
  const hunted = async (): Promise<HuntReport> => {
    await using recorded = await openRecording(
      { app, suite, elsewhere, url },
      states,
      sayOf(refusals.classify),
      budget.calls ?? 300,
    )
    const setting = {
      url,
      refusals,
      functions,
      budget: { ms: budget.ms ?? 180_000, pairMs: budget.pairMs ?? 10_000 },
      progress,
      began,
      outside: recorded.outside,
    }
    const report = await huntCalls(recorded.calls, states, setting, parts)
    return { ...report, notes: [...recorded.notes, ...report.notes] }
  }
  return await states.orStopped(hunted())
}

const huntOptions = {
  url: aText,
  app: [
    (value) =>
      typeof value === 'function' ||
      (typeof value === 'object' && typeof Reflect.get(value ?? {}, 'fetch') === 'function'),
    'a listener of node:http, or an object with fetch',
  ],
  suite: aFunction,
  elsewhere: oneOf<NonNullable<HuntOptions['elsewhere']>>({ recorded: true, send: true }),
  outcome: aFunction,
  refused: [isListOfTexts, 'a list of texts'],
  functions: oneOf<NonNullable<HuntOptions['functions']>>({ open: true, atomic: true }),
  budget: { ms: aNumber, pairMs: aNumber, calls: aNumber } satisfies KnownOptions<
    NonNullable<HuntOptions['budget']>
  >,
  onProgress: aFunction,
} satisfies KnownOptions<HuntOptions>
