import type {
  AccountReport,
  Advice,
  ObservedClaims,
  ObservedHold,
  ObservedLease,
  ObservedSchedule,
} from 'holdfast/observe'
import type { DeclaredBook } from 'holdfast/ledger'
import { cleanText } from '../terminal/clean-text.ts'
import { adviceLines } from './lock-tree.ts'
import type { Look } from './look.ts'
import { renderTable } from './table.ts'
import { age, moment } from './words.ts'

const none = '–'
const optional = (value: number | undefined): string => (value === undefined ? none : String(value))
const agoOf = (ms: number | undefined): string => (ms === undefined ? none : age(ms))

/** What to do about rows, below the table, each with the name of its row. */
function renderAdvice(
  rows: readonly { readonly name: string; readonly advice: readonly Advice[] }[],
  { width, paint }: Look,
): string[] {
  return rows.flatMap(({ name, advice }) =>
    advice.length === 0
      ? []
      : [
          '',
          paint('bold', cleanText(name)),
          ...advice.flatMap((each) => adviceLines(each, '  ', width - 2, paint)),
        ],
  )
}

export function renderHolds(holds: readonly ObservedHold[], look: Look): string[] {
  if (holds.length === 0) return ['Nothing is reserved.']
  return renderTable(
    [
      { title: 'book', of: ({ book }) => book },
      { title: 'key', of: ({ key }) => key },
      { title: 'amount', of: ({ amount }) => amount, right: true },
      { title: 'ends', of: ({ expiresAt }) => moment(expiresAt) },
      { title: 'overdue', of: ({ overdueMs }) => agoOf(overdueMs), right: true },
      { title: 'hold', of: ({ holdId }) => holdId },
      { title: 'operation', of: ({ operationId }) => operationId },
    ],
    holds,
    look,
  )
}

export function renderBooks(books: readonly DeclaredBook[], look: Look): string[] {
  if (books.length === 0) return ['No book was used yet.']
  return renderTable(
    [
      { title: 'book', of: ({ book }) => book },
      { title: 'is', of: ({ declared: { as } }) => as },
      {
        title: 'declared with',
        of: ({ declared }) =>
          Object.entries(declared)
            .filter(([option]) => option !== 'as')
            .map(([option, value]) => `${option} ${value}`)
            .join(', '),
      },
      { title: 'since', of: ({ since }) => moment(since.toISOString()) },
    ],
    books,
    look,
  )
}

export function renderLeases(leases: readonly ObservedLease[], look: Look): string[] {
  if (leases.length === 0) return ['No lease was ever taken.']
  return renderTable(
    [
      { title: 'lease', of: ({ name }) => name },
      { title: 'scope', of: ({ scope, name }) => (scope === name ? '' : scope) },
      { title: 'state', of: ({ held }) => (held ? 'held' : 'free') },
      { title: 'until', of: ({ held, expiresAt }) => (held ? moment(expiresAt) : none) },
      { title: 'token', of: ({ token }) => token, right: true },
      { title: 'note', of: ({ note }) => note ?? '' },
    ],
    leases,
    look,
  )
}

export function renderClaims(tables: readonly ObservedClaims[], look: Look): string[] {
  if (tables.length === 0) {
    return [
      'No table is known: name yours with --claims or as claims in holdfast.config.json; queues of hf.work are found.',
    ]
  }
  const capped = ({ capped: more }: ObservedClaims, number: number | undefined): string =>
    more && number === 10_000 ? '10000+' : optional(number)
  const nameOf = ({ table, queue }: ObservedClaims): string =>
    queue === undefined ? table : `${table} ${queue}`
  return [
    ...renderTable(
      [
        { title: 'table', of: nameOf },
        { title: 'ready', of: (row) => capped(row, row.ready), right: true },
        { title: 'oldest', of: ({ oldestReadyMs }) => agoOf(oldestReadyMs), right: true },
        { title: 'claimed', of: (row) => capped(row, row.claimed), right: true },
        { title: 'stranded', of: (row) => capped(row, row.stranded), right: true },
        { title: 'dead', of: (row) => capped(row, row.dead), right: true },
      ],
      tables,
      look,
    ),
    ...renderAdvice(
      tables.map((row) => ({ name: nameOf(row), advice: row.advice })),
      look,
    ),
  ]
}

export function renderSchedules(schedules: readonly ObservedSchedule[], look: Look): string[] {
  if (schedules.length === 0) return ['No schedule was ever started.']
  return [
    ...renderTable(
      [
        { title: 'schedule', of: ({ name }) => name },
        { title: 'rule', of: ({ rule }) => rule ?? 'when asked' },
        { title: 'state', of: stateOf },
        { title: 'last', of: ({ lastTick }) => moment(lastTick) },
        { title: 'outcome', of: outcomeOf },
        { title: 'next', of: ({ next }) => moment(next) },
      ],
      schedules,
      look,
    ),
    ...renderAdvice(schedules, look),
  ]
}

function stateOf({ paused, running, waiting, lateMs }: ObservedSchedule): string {
  const states = [
    paused ? 'paused' : '',
    running > 0 ? `${running} running` : '',
    waiting > 0 ? `${waiting} waiting` : '',
    lateMs === undefined ? '' : `late ${age(lateMs)}`,
  ].filter((state) => state !== '')
  return states.length === 0 ? 'idle' : states.join(', ')
}

/** Of the latest tick, and why it came to nothing. */
function outcomeOf({ ticks: [latest] }: ObservedSchedule): string {
  if (latest === undefined) return none
  const why =
    latest.error ??
    (latest.state === 'skipped' ? 'another was at work, or it was missed' : undefined)
  const missed = (latest.missed ?? 0) > 0 ? `, ${latest.missed} missed before it` : ''
  return `${latest.state}${latest.manual ? ' by hand' : ''}${missed}${why === undefined ? '' : `: ${why}`}`
}

export function renderAccount(
  { accounts, holds, grants, movements, next }: AccountReport,
  look: Look,
): string[] {
  const { paint } = look
  if (accounts.length === 0) return ['This account was never used.']
  const lines = renderTable(
    [
      ...(accounts.some(({ windowStart }) => windowStart !== undefined)
        ? [{ title: 'window', of: (row: (typeof accounts)[number]) => moment(row.windowStart) }]
        : []),
      { title: 'available', of: ({ available }) => available, right: true },
      { title: 'credited', of: ({ credited }) => credited, right: true },
      { title: 'debited', of: ({ debited }) => debited, right: true },
      { title: 'held', of: ({ held }) => held, right: true },
      { title: 'allowance', of: ({ allowance }) => allowance, right: true },
      { title: 'drift', of: ({ drift }) => drift, right: true },
      { title: 'moved', of: ({ movedAt }) => moment(movedAt) },
    ],
    accounts,
    look,
  )
  if (accounts.some(({ drift }) => drift !== '0')) {
    lines.push(
      '',
      paint(
        ['bold', 'red'],
        'The counters are not what the last movement left: run holdfast audit.',
      ),
    )
  }
  if (grants.length > 0) {
    lines.push(
      '',
      ...renderTable(
        [
          { title: 'grant', of: ({ grantId }) => grantId },
          { title: 'remaining', of: ({ remaining }) => remaining, right: true },
          { title: 'of', of: ({ amount }) => amount, right: true },
          { title: 'priority', of: ({ priority }) => String(priority), right: true },
          { title: 'expires', of: ({ expiresAt }) => moment(expiresAt) },
          { title: 'state', of: ({ state }) => state },
          { title: 'only for', of: ({ onlyFor }) => onlyFor?.join(', ') ?? '' },
        ],
        grants,
        look,
      ),
    )
  }
  if (holds.length > 0) lines.push('', ...renderHolds(holds, look))
  lines.push(
    '',
    ...renderTable(
      [
        { title: '#', of: ({ sequence }) => sequence, right: true },
        { title: 'at', of: ({ at }) => moment(at) },
        { title: 'kind', of: ({ kind }) => kind },
        { title: 'credit', of: ({ credit }) => credit, right: true },
        { title: 'debit', of: ({ debit }) => debit, right: true },
        { title: 'hold', of: ({ hold }) => hold, right: true },
        { title: 'available', of: ({ available }) => available, right: true },
        { title: 'operation', of: ({ operationId }) => operationId },
        { title: 'note', of: ({ note }) => note ?? '' },
      ],
      movements,
      look,
    ),
  )
  if (next !== undefined) lines.push('', `Older movements: --before=${next}`)
  return lines
}
