import { lockTotals } from 'holdfast/observe'
import { Refusal } from '../core/refusals.ts'
import type { ShownText } from '../core/shown-text.ts'
import { countOf, textOf } from '../http/limits.ts'
import type { DeadJobs } from '../watch/dead-jobs.ts'
import type { Redactor } from '../watch/redactor.ts'
import type { ReportName, Reports } from '../watch/report-rules.ts'
import type { WatchedDatabase } from '../watch/watched-database.ts'

/** A question to a database, ready to be asked. */
export interface Question {
  readonly report: ReportName
  /** Everything that makes it another question. */
  readonly about: readonly (string | number | undefined)[]
  /** Asks it, and makes of the answer what may be shown. */
  json(redactor: Redactor): Promise<ShownText>
  /** How long an answer serves everybody. */
  readonly keepMs?: number
}

/** Makes the question of a request. */
export type DataRoute = (database: WatchedDatabase, query: URLSearchParams) => Question

function question<Name extends ReportName>({
  ask,
  ...asked
}: Omit<Question, 'json' | 'report'> & {
  readonly report: Name
  ask(): Promise<Reports[Name]>
}): Question {
  return { ...asked, json: async (redactor) => redactor.json(asked.report, await ask()) }
}

const many = { atMost: 1_000, otherwise: 200 }

/** Everything under `api/` that is asked of the observer, by path. */
export const dataRoutes: ReadonlyMap<string, DataRoute> = new Map<string, DataRoute>([
  [
    'lock-minutes',
    ({ observer }, query) => {
      const namespace = textOf(query, 'namespace')
      const minutes = countOf(query, 'minutes', { atMost: 1_440, otherwise: 60 })
      return question({
        report: 'minutes',
        about: [namespace, minutes],
        ask: async () => {
          const used = await observer.lockMinutes({ ...optional({ namespace }), minutes })
          return { minutes: used, totals: lockTotals(used) }
        },
        keepMs: 5_000,
      })
    },
  ],
  [
    'names',
    ({ observer }, query) => {
      const namespace = textOf(query, 'namespace')
      const limit = countOf(query, 'limit', many)
      return question({
        report: 'names',
        about: [namespace, limit],
        ask: async () => ({ names: await observer.names({ ...optional({ namespace }), limit }) }),
      })
    },
  ],
  [
    'transactions',
    ({ observer }, query) => {
      const limit = countOf(query, 'limit', { atMost: 200, otherwise: 20 })
      return question({
        report: 'transactions',
        about: [limit],
        ask: () => observer.transactions({ limit }),
      })
    },
  ],
  [
    'books',
    ({ observer }) =>
      question({
        report: 'books',
        about: [],
        ask: async () => ({ books: await observer.books() }),
        keepMs: 3_000,
      }),
  ],
  [
    'account',
    ({ observer }, query) => {
      const [book, key] = [textOf(query, 'book'), textOf(query, 'key')]
      const [scope, before] = [textOf(query, 'scope'), textOf(query, 'before')]
      if (book === undefined || key === undefined) throw new Refusal('BAD_REQUEST')
      const movements = countOf(query, 'movements', { atMost: 500, otherwise: 50 })
      return question({
        report: 'account',
        about: [book, key, scope, before, movements],
        ask: () =>
          observer.account(
            { book, key, ...optional({ scope }) },
            { movements, ...optional({ before }) },
          ),
      })
    },
  ],
  [
    'keys',
    ({ observer }, query) => {
      const [book, after] = [textOf(query, 'book'), textOf(query, 'after')]
      if (book === undefined) throw new Refusal('BAD_REQUEST')
      const limit = countOf(query, 'limit', { atMost: 500, otherwise: 100 })
      return question({
        report: 'keys',
        about: [book, after, limit],
        ask: () => observer.keys(book, { limit, ...optional({ after }) }),
        keepMs: 3_000,
      })
    },
  ],
  [
    'usage',
    ({ observer }, query) => {
      const [book, key] = [textOf(query, 'book'), textOf(query, 'key')]
      const scope = textOf(query, 'scope')
      if (book === undefined || key === undefined) throw new Refusal('BAD_REQUEST')
      const days = countOf(query, 'days', { atMost: 366, otherwise: 30 })
      return question({
        report: 'usage',
        about: [book, key, scope, days],
        ask: () => observer.usage({ book, key, ...optional({ scope }) }, { days }),
        keepMs: 15_000,
      })
    },
  ],
  [
    'followers',
    ({ observer }) =>
      question({
        report: 'followers',
        about: [],
        ask: async () => ({ followers: await observer.followers() }),
        keepMs: 3_000,
      }),
  ],
  [
    'holds',
    ({ observer }, query) => {
      const limit = countOf(query, 'limit', many)
      return question({
        report: 'holds',
        about: [limit],
        ask: async () => ({ holds: await observer.holds({ limit }) }),
      })
    },
  ],
  [
    'leases',
    ({ observer }, query) => {
      const limit = countOf(query, 'limit', many)
      return question({
        report: 'leases',
        about: [limit],
        ask: async () => ({ leases: await observer.leases({ limit }) }),
      })
    },
  ],
  [
    'schedules',
    ({ observer }, query) => {
      const ticks = countOf(query, 'ticks', { atMost: 100, otherwise: 20 })
      return question({
        report: 'schedules',
        about: [ticks],
        ask: async () => ({ schedules: await observer.schedules({ ticks }) }),
      })
    },
  ],
  [
    'claims',
    ({ observer }) =>
      question({
        report: 'claims',
        about: [],
        ask: async () => ({ claims: await observer.claims() }),
        keepMs: 3_000,
      }),
  ],
  [
    'jobs',
    (database, query) => {
      const deadJobs = deadJobsOf(database)
      const [queue, after] = [textOf(query, 'queue'), textOf(query, 'after')]
      const limit = countOf(query, 'limit', { atMost: 200, otherwise: 50 })
      return question({
        report: 'jobs',
        about: [queue, after, limit],
        ask: () => deadJobs.list({ queue, after, limit }),
        keepMs: 0,
      })
    },
  ],
  [
    'job',
    (database, query) => {
      const id = textOf(query, 'id') ?? ''
      const deadJobs = deadJobsOf(database)
      if (!isJobId(id)) throw new Refusal('BAD_REQUEST')
      return question({ report: 'job', about: [id], ask: () => deadJobs.get(id), keepMs: 0 })
    },
  ],
  [
    'doctor',
    ({ examine }) => {
      if (examine === undefined) throw new Refusal('NOT_FOUND')
      return question({
        report: 'doctor',
        about: [],
        ask: async () => ({ findings: await examine() }),
        keepMs: 10_000,
      })
    },
  ],
])

/** `session/<pid>` is the only path with something variable in it. */
export function sessionRoute(rest: string): DataRoute | undefined {
  const pid = /^session\/([1-9]\d{0,9})$/.exec(rest)?.[1]
  if (pid === undefined) return undefined
  return ({ observer }) =>
    question({
      report: 'session',
      about: [pid],
      ask: async () => {
        const session = await observer.session(Number(pid))
        if (session === undefined) throw new Refusal('NO_SUCH_SESSION')
        return { session }
      },
    })
}

function deadJobsOf({ deadJobs, engine }: WatchedDatabase): DeadJobs {
  if (deadJobs !== undefined) return deadJobs
  throw new Refusal(engine === 'innodb' ? 'NOT_OFFERED' : 'NOT_FOUND')
}

/** As the table numbers its jobs. */
export function isJobId(value: unknown): value is string {
  return typeof value === 'string' && /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value)
}

/** Without what is not there: an observer is not asked with `undefined`. */
function optional<T extends Readonly<Record<string, string | undefined>>>(
  values: T,
): { readonly [K in keyof T]?: string } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    readonly [K in keyof T]?: string
  }
}
