import type { HealthFinding } from 'holdfast/health'
import type {
  AccountReport,
  BookKeys,
  BookSummary,
  LockMinute,
  LockTotal,
  ObservedClaims,
  ObservedFollower,
  ObservedHold,
  ObservedLease,
  ObservedLock,
  ObservedSchedule,
  ObservedSession,
  Percentiles,
  SeenName,
  TransactionReport,
  UsageReport,
} from 'holdfast/observe'
import type {
  DeadJobEntry,
  DeadJobList,
  DeadJobReport,
  HistoryPoint,
  Info,
  LoggedIn,
  TreeEvent,
} from '../core/wire.ts'
import { shownAdvice, shownFinding } from './mask-sentences.ts'
import type { Masks, Rules } from './rule.ts'

/** Everything that is sent as JSON, by what it is about. Refusals are texts of the table. */
export interface Reports {
  readonly account: AccountReport
  readonly books: { readonly books: readonly BookSummary[] }
  readonly claims: { readonly claims: readonly ObservedClaims[] }
  readonly doctor: { readonly findings: readonly HealthFinding[] }
  readonly done: { readonly done: boolean }
  readonly followers: { readonly followers: readonly ObservedFollower[] }
  readonly history: { readonly points: readonly HistoryPoint[] }
  readonly holds: { readonly holds: readonly ObservedHold[] }
  readonly info: Info
  readonly job: DeadJobReport
  readonly jobs: DeadJobList
  readonly keys: BookKeys
  readonly leases: { readonly leases: readonly ObservedLease[] }
  readonly login: LoggedIn
  readonly minutes: {
    readonly minutes: readonly LockMinute[]
    readonly totals: readonly LockTotal[]
  }
  readonly names: { readonly names: readonly SeenName[] }
  readonly schedules: { readonly schedules: readonly ObservedSchedule[] }
  readonly session: { readonly session: ObservedSession }
  readonly transactions: TransactionReport
  readonly tree: TreeEvent
  readonly usage: UsageReport
}

export type ReportName = keyof Reports
export type ReportRules = { readonly [Name in ReportName]: Rules<Reports[Name]> }

/** The name of a row or table lock is that of a table; a number that nobody named may be made of a key. */
function lockName(
  name: string,
  masks: Masks,
  { kind, namespace }: Pick<ObservedLock, 'kind' | 'namespace'>,
): string {
  return kind === 'named' || kind === 'advisory' ? masks.name(name, [namespace]) : name
}

/** Anybody can write a label, so it has a namespace only if the session's locks say so. */
function label(text: string, masks: Masks, { holds, waitsFor }: ObservedSession): string {
  return masks.name(
    text,
    [...holds, ...(waitsFor ? [waitsFor] : [])].map((lock) => lock.namespace),
  )
}

/** A place says nothing; the values of an index are what users write. */
function rowPlace(row: string, masks: Masks): string {
  return /^\(\d+,\d+\)$/.test(row) ? row : masks.text(row)
}

const lock: Rules<ObservedLock> = {
  kind: 'plain',
  name: lockName,
  source: 'plain',
  namespace: 'plain',
  // A hash of the key, which can be guessed.
  id: 'secret',
  table: 'plain',
  row: rowPlace,
  meaning: 'plain',
  mode: 'plain',
  heldAtMostMs: 'plain',
}
const session: Rules<ObservedSession> = {
  pid: 'plain',
  startedAt: 'plain',
  hidden: 'plain',
  database: 'plain',
  application: 'secret',
  label,
  user: 'plain',
  client: 'plain',
  state: 'plain',
  stateMs: 'plain',
  transactionStartedAt: 'plain',
  transactionId: 'plain',
  transactionMs: 'plain',
  query: 'query',
  queryMs: 'plain',
  holds: lock,
  waitsFor: lock,
  waitingMs: 'plain',
  blockedBy: { pid: 'plain', kind: 'plain' },
  waiters: 'plain',
  advice: shownAdvice,
}
const hold: Rules<ObservedHold> = {
  book: 'plain',
  key: 'secret',
  scope: 'secret',
  holdId: 'secret',
  amount: 'plain',
  expiresAt: 'plain',
  overdue: 'plain',
  overdueMs: 'plain',
  operationId: 'secret',
}
const job: Rules<DeadJobEntry> = {
  id: 'plain',
  queue: 'plain',
  scope: 'secret',
  uniqueKey: 'secret',
  priority: 'plain',
  attempts: 'plain',
  maxAttempts: 'plain',
  enqueuedAt: 'plain',
  runAt: 'plain',
  error: 'secret',
}
const percentiles: Rules<Percentiles> = {
  count: 'plain',
  buckets: 'plain',
  p50: 'plain',
  p95: 'plain',
  p99: 'plain',
  max: 'plain',
}
const identity: Rules<Info['identity']> = { name: 'plain', role: 'plain' }

/** What may be shown of each. */
export const reportRules: ReportRules = {
  account: {
    accounts: {
      book: 'plain',
      key: 'secret',
      scope: 'secret',
      windowStart: 'plain',
      windowEnd: 'plain',
      credited: 'plain',
      debited: 'plain',
      held: 'plain',
      allowance: 'plain',
      available: 'plain',
      limitIsSet: 'plain',
      sequence: 'plain',
      movedAt: 'plain',
      dueAt: 'plain',
      drift: 'plain',
    },
    holds: hold,
    grants: {
      grantId: 'secret',
      amount: 'plain',
      remaining: 'plain',
      priority: 'plain',
      state: 'plain',
      expiresAt: 'plain',
      onlyFor: 'secret',
    },
    movements: {
      sequence: 'plain',
      at: 'plain',
      kind: 'plain',
      credit: 'plain',
      debit: 'plain',
      hold: 'plain',
      available: 'plain',
      operationId: 'secret',
      holdId: 'secret',
      grantId: 'secret',
      note: 'secret',
      windowStart: 'plain',
    },
    next: 'plain',
  },
  books: {
    books: {
      book: 'plain',
      accounts: 'plain',
      capped: 'plain',
      openHolds: 'plain',
      overdueHolds: 'plain',
      oldestOverdueMs: 'plain',
      advice: shownAdvice,
    },
  },
  claims: {
    claims: {
      table: 'plain',
      queue: 'plain',
      ready: 'plain',
      claimed: 'plain',
      dead: 'plain',
      capped: 'plain',
      oldestReadyMs: 'plain',
      stranded: 'plain',
      oldestStrandedMs: 'plain',
      advice: shownAdvice,
    },
  },
  doctor: { findings: shownFinding },
  done: { done: 'plain' },
  followers: {
    followers: { name: 'secret', book: 'plain', since: 'plain', readUpTo: 'plain' },
  },
  history: {
    points: {
      at: 'plain',
      sessions: 'plain',
      waiting: 'plain',
      longestWaitMs: 'plain',
      holders: 'plain',
    },
  },
  holds: { holds: hold },
  // Of whoever asks, and of how the console was set up.
  info: {
    version: 'plain',
    identity,
    csrf: 'plain',
    expiresAt: 'plain',
    actions: 'plain',
    redaction: { keys: 'plain', queries: 'plain' },
    databases: { name: 'plain', engine: 'plain', features: { doctor: 'plain', actions: 'plain' } },
    pollMs: 'plain',
    history: { minutes: 'plain', always: 'plain' },
  },
  job: { job: { ...job, payload: 'secret' } },
  // Where a page ends is said by queue, time, bucket and id.
  jobs: { jobs: job, next: 'plain' },
  keys: {
    keys: {
      key: 'secret',
      scope: 'secret',
      credited: 'plain',
      debited: 'plain',
      held: 'plain',
      allowance: 'plain',
      available: 'plain',
      due: 'plain',
      movedAt: 'plain',
      windowStart: 'plain',
      windowEnd: 'plain',
    },
    // It is a key: where keys are masked there is no next page.
    next: (key, masks) => (masks.on ? '' : key),
  },
  leases: {
    leases: {
      scope: 'secret',
      name: 'secret',
      token: 'plain',
      held: 'plain',
      note: 'secret',
      acquiredAt: 'plain',
      expiresAt: 'plain',
    },
  },
  login: { identity, csrf: 'plain' },
  minutes: {
    minutes: {
      minute: 'plain',
      namespace: 'plain',
      acquired: 'plain',
      timeouts: 'plain',
      busy: 'plain',
      wait: percentiles,
      hold: percentiles,
    },
    totals: {
      namespace: 'plain',
      acquired: 'plain',
      timeouts: 'plain',
      busy: 'plain',
      wait: percentiles,
      hold: percentiles,
    },
  },
  names: {
    names: {
      id: 'secret',
      name: (name, masks, { namespace }) => masks.name(name, [namespace]),
      namespace: 'plain',
      seenAt: 'plain',
    },
  },
  schedules: {
    schedules: {
      name: 'secret',
      rule: 'plain',
      lastTick: 'plain',
      next: 'plain',
      lateMs: 'plain',
      paused: 'plain',
      running: 'plain',
      waiting: 'plain',
      ticks: {
        at: 'plain',
        state: 'plain',
        manual: 'plain',
        attempt: 'plain',
        holder: 'secret',
        startedAt: 'plain',
        finishedAt: 'plain',
        leaseUntil: 'plain',
        missed: 'plain',
        error: 'secret',
      },
      advice: shownAdvice,
    },
  },
  session: { session },
  transactions: {
    at: 'plain',
    longest: session,
    // An application_name, the name of a prepared transaction, of a slot.
    oldestXmin: { age: 'plain', by: 'plain', who: 'secret', pid: 'plain' },
    advice: shownAdvice,
  },
  tree: {
    at: 'plain',
    roots: 'plain',
    sessions: session,
    capped: 'plain',
    tookMs: 'plain',
    hotKeys: {
      kind: 'plain',
      name: lockName,
      namespace: 'plain',
      waiting: 'plain',
      longestWaitMs: 'plain',
    },
  },
  usage: {
    from: 'plain',
    rows: {
      feature: 'secret',
      used: 'plain',
      refunded: 'plain',
      over: 'plain',
      movements: 'plain',
    },
    complete: 'plain',
  },
}
