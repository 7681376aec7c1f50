import { Refusal } from '../core/refusals.ts'
import { countOf, textOf } from '../http/limits.ts'
import type { ReportName } from '../watch/report-rules.ts'
import type { WatchedDatabase } from '../watch/watched-database.ts'

/** A question to a database, ready to be asked. */
export interface Question {
  readonly report: ReportName
  /** Everything that makes it another question. */
  readonly about: readonly (string | number | undefined)[]
  ask(): Promise<object>
  /** How long an answer serves everybody. */
  readonly keepMs?: number
}

type DataRoute = (database: WatchedDatabase, query: URLSearchParams) => Question

const many = { atMost: 1_000, otherwise: 200 }

/** Everything under `api/` that is asked of the observer, by path. */
export const dataRoutes: ReadonlyMap<string, DataRoute> = new Map<string, DataRoute>([
  [
    'lock-minutes',
    ({ observer }, query) => {
      const namespace = textOf(query, 'namespace')
      const minutes = countOf(query, 'minutes', { atMost: 1_440, otherwise: 60 })
      return {
        report: 'minutes',
        about: [namespace, minutes],
        ask: async () => ({
          minutes: await observer.lockMinutes({ ...optional({ namespace }), minutes }),
        }),
        keepMs: 5_000,
      }
    },
  ],
  [
    'names',
    ({ observer }, query) => {
      const namespace = textOf(query, 'namespace')
      const limit = countOf(query, 'limit', many)
      return {
        report: 'names',
        about: [namespace, limit],
        ask: async () => ({ names: await observer.names({ ...optional({ namespace }), limit }) }),
      }
    },
  ],
  [
    'transactions',
    ({ observer }, query) => {
      const limit = countOf(query, 'limit', { atMost: 200, otherwise: 20 })
      return { report: 'transactions', about: [limit], ask: () => observer.transactions({ limit }) }
    },
  ],
  [
    'books',
    ({ observer }) => ({
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
      return {
        report: 'account',
        about: [book, key, scope, before, movements],
        ask: () =>
          observer.account(
            { book, key, ...optional({ scope }) },
            { movements, ...optional({ before }) },
          ),
      }
    },
  ],
  [
    'holds',
    ({ observer }, query) => {
      const limit = countOf(query, 'limit', many)
      return {
        report: 'holds',
        about: [limit],
        ask: async () => ({ holds: await observer.holds({ limit }) }),
      }
    },
  ],
  [
    'leases',
    ({ observer }, query) => {
      const limit = countOf(query, 'limit', many)
      return {
        report: 'leases',
        about: [limit],
        ask: async () => ({ leases: await observer.leases({ limit }) }),
      }
    },
  ],
  [
    'schedules',
    ({ observer }, query) => {
      const ticks = countOf(query, 'ticks', { atMost: 100, otherwise: 20 })
      return {
        report: 'schedules',
        about: [ticks],
        ask: async () => ({ schedules: await observer.schedules({ ticks }) }),
      }
    },
  ],
  [
    'claims',
    ({ observer }) => ({
      report: 'claims',
      about: [],
      ask: async () => ({ claims: await observer.claims() }),
      keepMs: 3_000,
    }),
  ],
  [
    'doctor',
    ({ examine }) => {
      if (examine === undefined) throw new Refusal('NOT_FOUND')
      return {
        report: 'doctor',
        about: [],
        ask: async () => ({ findings: await examine() }),
        keepMs: 10_000,
      }
    },
  ],
])

/** `session/<pid>` is the only path with something variable in it. */
export function sessionRoute(rest: string): DataRoute | undefined {
  const pid = /^session\/([1-9]\d{0,9})$/.exec(rest)?.[1]
  if (pid === undefined) return undefined
  return ({ observer }) => ({
    report: 'session',
    about: [pid],
    ask: async () => {
      const session = await observer.session(Number(pid))
      if (session === undefined) throw new Refusal('NO_SUCH_SESSION')
      return { session }
    },
  })
}

/** Without what is not there: an observer is not asked with `undefined`. */
function optional<T extends Readonly<Record<string, string | undefined>>>(
  values: T,
): { readonly [K in keyof T]?: string } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    readonly [K in keyof T]?: string
  }
}
