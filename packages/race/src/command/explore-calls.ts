/** What tests that a hunt has written call: two calls at once, from rows that the test has. */
import { fileURLToPath } from 'node:url'
import {
  aNumber,
  anObject,
  assertForm,
  assertOptions,
  aText,
  type KnownOptions,
  oneOf,
  type OptionForm,
} from '../core/known-options.ts'
import type { Report } from '../core/model.ts'
import type { Heard } from '../hunt/record/heard.ts'
import { fillSecrets } from '../hunt/tests/fill-secrets.ts'
import type { NamedRows } from '../run/state/named-rows.ts'
import { databaseUrl } from '../run/connection/url.ts'
import { socketVariable } from './messages.ts'
import { runProver } from './processes.ts'
import type { CallAgain } from './prove-again.ts'

/** Two calls, the rows before them, and what answers. */
export interface ExploreCallsOptions {
  /** Name for the report; default the names of the calls. */
  readonly name?: string
  /** The database, directly and not through a pooler. Its rows are put back in the end. */
  readonly url: string | undefined
  /** The file of the application, as for `--app`: it exports `app`, `calls`, or starts a server. */
  readonly app: string | URL
  /** What is sent at once. */
  readonly calls: readonly [CallAgain, CallAgain]
  /** The rows before them, by table and column. Columns that are not named get their defaults. */
  readonly rows: NamedRows
  /** Values that are not written down in `calls`, by the names of their headers and fields. */
  readonly secrets?: Readonly<Record<string, string | undefined>>
  /** Variables of the environment that the application needs beside those of the test. */
  readonly environment?: Readonly<Record<string, string>>
  /** What other machines have answered; without it requests to them fail. */
  readonly heard?: readonly Heard[]
  /** `recorded` (default): nothing is sent to other machines. `send`: everything is. */
  readonly elsewhere?: 'recorded' | 'send'
  /** `atomic`: SQL functions and triggers count as one statement each; see `explore()`. Default `open`. */
  readonly functions?: 'open' | 'atomic'
  readonly budget?: {
    /** Runs; default 2,000. */
    readonly schedules?: number
    /** Time; default 30,000. */
    readonly ms?: number
  }
}

/** In a process of its own, which is `program`. */
export async function exploreCallsBy(program: URL, options: ExploreCallsOptions): Promise<Report> {
  assertOptions(options, knownOptions)
  assertForm(options.app, aFile, 'app')
  assertForm(options.calls, twoCalls, 'calls')
  assertForm(options.rows, anObject, 'rows')
  const { calls, secrets = {}, environment = {}, heard = [], budget = {} } = options
  const { app, rows, elsewhere = 'recorded', functions = 'open' } = options
  const [one, other] = calls.map((call) => ({ ...call, input: fillSecrets(call.input, secrets) }))
  const again = [one, other] as [CallAgain, CallAgain]
  const url = databaseUrl('exploreCalls()', options.url)
  // Of a suite that is being recorded this is no call.
  const { [socketVariable]: _, ...own } = process.env
  const task = {
    name: options.name ?? again.map(({ name }) => name).join(' × '),
    app: typeof app === 'string' ? app : fileURLToPath(app),
    url,
    again,
    rows,
    heard,
    elsewhere,
    functions,
    budget: { schedules: budget.schedules ?? 2_000, ms: budget.ms ?? 30_000 },
  }
  const report = await runProver(program, task, { ...own, ...environment, DATABASE_URL: url })
  return report as Report
}

const aFile: OptionForm = [
  (value) => typeof value === 'string' || value instanceof URL,
  'the path of a file, or its URL',
]
const twoCalls: OptionForm = [
  (value) => Array.isArray(value) && value.length === 2,
  'a list of two calls',
]

const knownOptions = {
  name: aText,
  url: aText,
  app: aFile,
  calls: twoCalls,
  rows: anObject,
  secrets: anObject,
  environment: anObject,
  heard: [Array.isArray, 'a list'],
  elsewhere: oneOf<NonNullable<ExploreCallsOptions['elsewhere']>>({ recorded: true, send: true }),
  functions: oneOf<NonNullable<ExploreCallsOptions['functions']>>({ open: true, atomic: true }),
  budget: { schedules: aNumber, ms: aNumber } satisfies KnownOptions<
    NonNullable<ExploreCallsOptions['budget']>
  >,
} satisfies KnownOptions<ExploreCallsOptions>
