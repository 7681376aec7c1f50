import type { KeyBalance, KnownFollower, UsageRow } from 'holdfast/ledger'
import type { Look } from './look.ts'
import { renderTable } from './table.ts'
import { moment } from './words.ts'

const none = '–'

export function renderKeys(keys: readonly KeyBalance<bigint>[], look: Look): string[] {
  const number = (title: string, of: (key: KeyBalance<bigint>) => bigint) => ({
    title,
    of: (key: KeyBalance<bigint>) => String(of(key)),
    right: true,
  })
  return renderTable(
    [
      { title: 'key', of: ({ key }) => key },
      { title: 'scope', of: ({ scope, key }) => (scope === key ? '' : scope) },
      number('available', ({ available }) => available),
      number('credited', ({ credited }) => credited),
      number('debited', ({ debited }) => debited),
      number('held', ({ held }) => held),
      { title: 'moved', of: ({ at }) => (at === undefined ? none : moment(at.toISOString())) },
      {
        title: 'window until',
        of: ({ window }) => (window === undefined ? '' : moment(window.end.toISOString())),
      },
    ],
    keys,
    look,
  )
}

export function renderUsage(
  rows: readonly UsageRow<bigint>[],
  { by, per }: { readonly by: readonly string[]; readonly per: unknown },
  look: Look,
): string[] {
  if (rows.length === 0) return ['Nothing was used in this time.']
  type Row = UsageRow<bigint>
  return renderTable(
    [
      ...(per === undefined
        ? []
        : [
            {
              title: 'since',
              of: ({ period }: Row) => (period === undefined ? none : moment(period.toISOString())),
            },
          ]),
      ...(['key', 'scope', 'feature'] as const)
        .filter((name) => by.includes(name))
        .map((name) => ({ title: name, of: (row: Row) => row[name] ?? none })),
      { title: 'used', of: ({ used }) => String(used), right: true },
      { title: 'refunded', of: ({ refunded }) => String(refunded), right: true },
      { title: 'over', of: ({ over }) => String(over), right: true },
      { title: 'movements', of: ({ movements }) => String(movements), right: true },
    ],
    rows,
    look,
  )
}

export function renderFollowers(followers: readonly KnownFollower[], look: Look): string[] {
  if (followers.length === 0) return ['Nobody follows.']
  return renderTable(
    [
      { title: 'follower', of: ({ name }) => name },
      { title: 'book', of: ({ book }) => book ?? 'all' },
      { title: 'since', of: ({ since }) => moment(since.toISOString()) },
      {
        title: 'read up to',
        of: ({ readUpTo }) => (readUpTo === undefined ? none : moment(readUpTo.toISOString())),
      },
    ],
    followers,
    look,
  )
}
