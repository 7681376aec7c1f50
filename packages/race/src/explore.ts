/** Options in, report out: a runner on the database, the search over it. */
import {
  aBoolean,
  aFunction,
  aNumber,
  anObject,
  anObjectOf,
  assertForm,
  assertOptions,
  aText,
  either,
  isFalse,
  isListOfTexts,
  type KnownOptions,
  names as someNames,
  oneOf,
  type OptionForm,
} from './core/known-options.ts'
import type { Progress, Report, Said } from './core/model.ts'
import { progressLine } from './report/progress.ts'
import { createRunner } from './run/create-runner.ts'
import type { DatabaseContext, Flow, FlowContext, InvariantContext } from './run/options.ts'
import type { FlowEnd } from './run/answer/said.ts'
import { takeTurn } from './run/connection/turn.ts'
import { databaseUrl } from './run/connection/url.ts'
import { search } from './search/search.ts'

/** What to explore, and how far. */
export interface ExploreOptions {
  /** Name for the report; default the names of the flows. */
  readonly name?: string
  /** The database, directly and not through a pooler. Its user tables are compared after every run. */
  readonly url: string | undefined
  /** Two or more flows, as they are in production; what connects through its context is scheduled. */
  readonly flows: Readonly<Record<string, Flow>>
  /**
   * Runs before every schedule, on a connection of its own: empty the tables, insert what is needed. Without it, and
   * without `state`, the flows have to leave everything as it was; otherwise the verdict is `inconclusive`.
   */
  readonly seed?: (context: DatabaseContext) => Promise<unknown>
  /**
   * `restore`: the database is taken as it is. Rows of all tables and the places of sequences are put back before every
   * schedule and at the end, and a `seed`, if there is one, runs on them. So they are when the process gets SIGINT,
   * SIGTERM or SIGHUP; if it is killed, the next exploration says what to do. The role has to be a superuser, or may
   * set `session_replication_role`. Tables that flows make or alter are not brought back.
   *
   * `clone`: every schedule runs on a copy of the whole database, made by `CREATE DATABASE … TEMPLATE`, and the
   * database itself is not touched. For what rows cannot bring back: tables that flows make or alter, large objects,
   * materialized views. The role needs CREATEDB and has to own the database; nobody else may be connected to it when
   * explore() begins, apart from pools that are under `instrument()`. `seed`, if there is one, runs on each copy.
   */
  readonly state?: 'restore' | 'clone'
  /** Looks at the final state and at how the flows ended, and throws if that must not be. */
  readonly invariant?: (context: InvariantContext) => Promise<unknown>
  /**
   * The serial-outcome oracle, on by default: whatever no serial order of the flows could have led to is
   * a race. `tables` compares only these, `ignore` leaves out columns (`created_at`, `orders.id`).
   */
  readonly oracle?:
    | { readonly tables?: readonly string[]; readonly ignore?: readonly string[] }
    | false
  /**
   * What an answer or an error says: `accepted`, `refused` (said no, and left nothing behind, which is safe in any
   * order) or `failed` (went wrong; if no serial order gives that, it is a finding). By default a status of 4xx or 503,
   * `ok: false` or `success: false`, an error of yours and SQLSTATEs of constraints and concurrency are refusals; a status of 5xx, a
   * TypeError and other SQLSTATEs are failures. Return undefined for what is to be left to that.
   */
  readonly outcome?: (end: FlowEnd) => Said | undefined
  /** Groups of flows that do the same; orders that only swap them are run once. `true`: all of them. */
  readonly symmetric?: boolean | readonly (readonly string[])[]
  /**
   * Also ends each flow before each of its statements, and after each commit before its answer arrives.
   * After that a flow must have happened as a whole or not at all; `recover` may see to it.
   */
  readonly crash?:
    | boolean
    | { readonly recover?: (context: FlowContext, flow: string) => Promise<unknown> }
  /**
   * `report` (default): a deadlock is counted and noted. PostgreSQL ends one of the flows, whose work is
   * undone, and if a caller tries again nothing is lost. `fail`: a deadlock is a failure.
   */
  readonly deadlocks?: 'report' | 'fail'
  /** `split` (default): an autocommit statement is executed and committed in two steps. */
  readonly autocommit?: 'split' | 'atomic'
  /**
   * `open` (default): others can act between the statements that a function, a trigger or a DO block runs. No schedule
   * does, so where that can matter the verdict is at most `bounded`. `atomic`: each counts as one statement, as for code
   * that is proven in another way.
   */
  readonly functions?: 'open' | 'atomic'
  readonly budget?: {
    /** Runs; default 2,000. The serial orders are run in any case, and so is one in which the flows take turns. */
    readonly schedules?: number
    /** Time; default 20,000. The same runs are made in any case. */
    readonly ms?: number
    /** Steps of one run; default 500. */
    readonly steps?: number
  }
  /** A token of an earlier report: that schedule first; default `HOLDFAST_RACE_REPLAY` of the environment. */
  readonly replay?: string
  /** Seed of the random runs; default 1. */
  readonly rng?: number
  /** Told after every run; by default a search of more than a second shows a line on stderr. */
  readonly onProgress?: (progress: Progress) => void
}

/**
 * Runs the flows in every order that can differ, or as many as the budget allows.
 *
 * ```ts
 * const report = await explore({
 *   url: process.env.DATABASE_URL,
 *   seed: ({ sql }) => sql`TRUNCATE seats`,
 *   flows: {
 *     alice: ({ pool }) => reserve(pool, 'alice'),
 *     bob: ({ pool }) => reserve(pool, 'bob'),
 *   },
 * })
 * ```
 */
export async function explore(options: ExploreOptions): Promise<Report> {
  assertOptions(options, exploreOptions)
  const url = databaseUrl('explore()', options.url)
  const names = Object.keys(options.flows ?? {})
  if (names.length < 2 || names.length > 26)
    throw new Error('explore() needs two or more flows, at most 26')
  for (const name of names) assertForm(options.flows[name], aFunction, `flows.${name}`)
  if (options.oracle === false && options.invariant === undefined)
    throw new Error('explore() without an oracle needs an invariant, or nothing can be wrong')
  const { recover } = typeof options.crash === 'object' ? options.crash : {}
  using _turn = await takeTurn()
  await using runner = await createRunner({
    url,
    flows: options.flows,
    seed: options.seed,
    state: options.state,
    invariant: options.invariant,
    oracle: options.oracle,
    outcome: options.outcome,
    autocommit: options.autocommit,
    functions: options.functions,
    recover,
    limits: limitsOf(options.budget),
  })
  const name = options.name ?? names.join(', ')
  const replay = options.replay ?? process.env['HOLDFAST_RACE_REPLAY']
  using line = progressLine(name)
  const findings = await search(runner, {
    budget: { schedules: options.budget?.schedules ?? 2_000, ms: options.budget?.ms ?? 20_000 },
    oracle: options.oracle !== false,
    symmetric: groupsOf(options.symmetric, names),
    crash: options.crash !== undefined && options.crash !== false,
    deadlocks: options.deadlocks ?? 'report',
    ...(replay === undefined || replay === '' ? {} : { replay }),
    ...(options.rng === undefined ? {} : { seed: options.rng }),
    onProgress: options.onProgress ?? line.update,
  })
  // Who sends nothing while the flow is under way may send it later, when everything is over.
  const late = findings.trouble?.kind === 'nothing-sent' ? await runner.latecomer() : undefined
  return {
    name,
    flows: names,
    server: runner.server,
    ...findings,
    ...(findings.failure && { known: runner.known() ?? [] }),
    ...(late && { verdict: 'inconclusive', trouble: late }),
  }
}

const groups: OptionForm = [
  (value) => Array.isArray(value) && value.every(isListOfTexts),
  'a list of groups, each a list of names of flows',
]
const someTables: OptionForm = [
  (value) => isListOfTexts(value) && value.length > 0,
  'a list of one or more names (to compare no table: oracle: false, and an invariant)',
]

type ObjectOf<N extends 'oracle' | 'crash'> = Exclude<ExploreOptions[N], boolean | undefined>

type Words<N extends 'state' | 'deadlocks' | 'autocommit' | 'functions'> = NonNullable<
  ExploreOptions[N]
>

/** What `record()` has as well. */
export const commonOptions: KnownOptions<
  Pick<ExploreOptions, 'name' | 'url' | 'seed' | 'state' | 'oracle' | 'outcome'>
> = {
  name: aText,
  // What is missing, as an environment variable may be, is told by its own words.
  url: aText,
  seed: aFunction,
  state: oneOf<Words<'state'>>({ restore: true, clone: true }),
  oracle: either(
    isFalse,
    anObjectOf({ tables: someTables, ignore: someNames } satisfies KnownOptions<
      ObjectOf<'oracle'>
    >),
  ),
  outcome: aFunction,
}

const exploreOptions = {
  ...commonOptions,
  flows: anObject,
  invariant: aFunction,
  symmetric: either(aBoolean, groups),
  crash: either(
    aBoolean,
    anObjectOf({ recover: aFunction } satisfies KnownOptions<ObjectOf<'crash'>>),
  ),
  deadlocks: oneOf<Words<'deadlocks'>>({ report: true, fail: true }),
  autocommit: oneOf<Words<'autocommit'>>({ split: true, atomic: true }),
  functions: oneOf<Words<'functions'>>({ open: true, atomic: true }),
  budget: { schedules: aNumber, ms: aNumber, steps: aNumber } satisfies KnownOptions<
    NonNullable<ExploreOptions['budget']>
  >,
  replay: aText,
  rng: aNumber,
  onProgress: aFunction,
} satisfies KnownOptions<ExploreOptions>

function limitsOf({ steps, ms }: NonNullable<ExploreOptions['budget']> = {}): {
  readonly steps?: number
  readonly codeMs?: number
} {
  return {
    ...(steps === undefined ? {} : { steps }),
    ...(ms === undefined ? {} : { codeMs: ms }),
  }
}

function groupsOf(symmetric: ExploreOptions['symmetric'], names: readonly string[]): number[][] {
  if (symmetric === undefined || symmetric === false) return []
  if (symmetric === true) return [[...names.keys()]]
  return symmetric.map((group) =>
    group.map((name) => {
      const flow = names.indexOf(name)
      if (flow === -1) throw new Error(`symmetric: there is no flow named ${name}`)
      return flow
    }),
  )
}
