/** How a field is treated. Fields that are not listed are `secret`: what is new is masked until it is looked at. */
export type Rule = 'plain' | 'name' | 'secret' | 'query' | 'sentence' | Rules
export interface Rules {
  readonly [field: string]: Rule
}

const advice: Rules = { code: 'plain', what: 'sentence', fix: 'sentence' }
const lock: Rules = {
  kind: 'plain',
  name: 'name',
  source: 'plain',
  namespace: 'plain',
  table: 'plain',
  row: 'plain',
  meaning: 'plain',
  mode: 'plain',
}
const session: Rules = {
  startedAt: 'plain',
  database: 'plain',
  application: 'plain',
  label: 'name',
  user: 'plain',
  client: 'plain',
  state: 'plain',
  query: 'query',
  holds: lock,
  waitsFor: lock,
  blockedBy: { kind: 'plain' },
  advice,
}
const hold: Rules = { book: 'plain', expiresAt: 'plain', amount: 'plain' }
const numbers: Rules = {
  credited: 'plain',
  debited: 'plain',
  held: 'plain',
  allowance: 'plain',
  available: 'plain',
  sequence: 'plain',
  drift: 'plain',
  credit: 'plain',
  debit: 'plain',
  hold: 'plain',
  amount: 'plain',
  remaining: 'plain',
}
const times: Rules = {
  at: 'plain',
  windowStart: 'plain',
  windowEnd: 'plain',
  movedAt: 'plain',
  dueAt: 'plain',
  expiresAt: 'plain',
  acquiredAt: 'plain',
  seenAt: 'plain',
  startedAt: 'plain',
  finishedAt: 'plain',
  leaseUntil: 'plain',
  lastTick: 'plain',
}

/** What is sent, by what it is about. */
export type ReportName =
  | 'tree'
  | 'session'
  | 'names'
  | 'minutes'
  | 'transactions'
  | 'books'
  | 'account'
  | 'holds'
  | 'leases'
  | 'schedules'
  | 'claims'
  | 'doctor'

/** One per report. */
export const reports: Readonly<Record<ReportName, Rules>> = {
  tree: { at: 'plain', sessions: session },
  session: { session },
  names: { names: { name: 'name', namespace: 'plain', seenAt: 'plain' } },
  minutes: { minutes: { minute: 'plain', namespace: 'plain' } },
  transactions: {
    at: 'plain',
    longest: session,
    oldestXmin: { by: 'plain', who: 'plain' },
    advice,
  },
  books: { books: { book: 'plain', oldestOverdueMs: 'plain', advice } },
  account: {
    accounts: { book: 'plain', ...numbers, ...times },
    holds: hold,
    grants: { ...numbers, ...times },
    movements: { kind: 'plain', ...numbers, ...times },
    next: 'plain',
  },
  holds: { holds: hold },
  leases: { leases: { name: 'name', token: 'plain', ...times } },
  schedules: {
    schedules: {
      name: 'plain',
      rule: 'plain',
      next: 'plain',
      ...times,
      ticks: { state: 'plain', holder: 'plain', ...times },
      advice,
    },
  },
  claims: { claims: { table: 'plain', queue: 'plain', advice } },
  // Of the catalogue and the settings of the server, not of keys.
  doctor: {
    findings: {
      code: 'plain',
      severity: 'plain',
      group: 'plain',
      object: 'plain',
      what: 'sentence',
      fix: 'sentence',
    },
  },
}
