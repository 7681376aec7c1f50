import { readFollowers } from '../engines/postgres/ledger/follow.ts'
import { listKeys, readUsage } from '../engines/postgres/ledger/reads.ts'
import { assertText } from '../core/options/given.ts'
import { nameText } from '../ledger/operation.ts'
import { ask, limitOf, type Looking } from './answer.ts'
import { availableOf, isoOf } from './ledger.ts'
import type { ObservedFollower, ObservedKey, ObservedUsage } from './model.ts'
import type { AccountAddress, BookKeys, KeysPage, UsageReport } from './observer.ts'

interface StoredKey extends Pick<ObservedKey, 'key' | 'scope' | 'credited' | 'debited' | 'held'> {
  readonly allowance: string
  readonly due: boolean
  readonly at: string | null
  readonly start: string | null
  readonly end: string | null
}

export async function observeKeys<Tx>(
  looking: Looking<Tx>,
  book: string,
  { limit = 100, after }: KeysPage = {},
): Promise<BookKeys> {
  assertText(after, 'after')
  const statement = listKeys(looking.schema, nameText(book, 'book'), after, limitOf(limit, 'limit'))
  const { keys, next } = await ask<Tx, { keys: StoredKey[]; next: string | null }>(
    looking,
    statement,
  )
  return { keys: keys.map(keyOf), ...(next === null ? {} : { next }) }
}

function keyOf(stored: StoredKey): ObservedKey {
  const { key, scope, credited, debited, held, allowance, due, at, start, end } = stored
  return {
    key,
    scope,
    credited,
    debited,
    held,
    allowance,
    available: availableOf(stored),
    due,
    ...(at === null ? {} : { movedAt: isoOf(at) }),
    ...(start === null ? {} : { windowStart: isoOf(start) }),
    ...(end === null ? {} : { windowEnd: isoOf(end) }),
  }
}

const dayMs = 86_400_000

/** Of one key: what adds up a whole book has no place in a look. */
export async function observeUsage<Tx>(
  looking: Looking<Tx>,
  { book, key, scope }: AccountAddress,
  { days = 30 }: { readonly days?: number } = {},
): Promise<UsageReport> {
  const keyText = nameText(key, 'key')
  const to = new Date()
  const from = new Date(to.getTime() - limitOf(days, 'days', 366) * dayMs)
  const question = {
    book: nameText(book, 'book'),
    from: from.toISOString(),
    to: new Date(to.getTime() + dayMs).toISOString(),
    unit: undefined,
    zone: 'UTC',
    by: ['feature'],
    key: keyText,
    scope: scope === undefined ? keyText : nameText(scope, 'scope'),
    most: 1_000,
  }
  const answer = await ask<Tx, { rows: StoredUsage[]; complete: boolean } | null>(
    looking,
    readUsage(looking.schema, question),
  )
  const rows = (answer?.rows ?? []).map(usageOf)
  return { from: from.toISOString(), rows, complete: answer?.complete ?? false }
}

interface StoredUsage extends Pick<ObservedUsage, 'used' | 'refunded' | 'over' | 'movements'> {
  readonly feature: string | null
}

function usageOf({ feature, used, refunded, over, movements }: StoredUsage): ObservedUsage {
  return { ...(feature === null ? {} : { feature }), used, refunded, over, movements }
}

interface StoredFollower {
  readonly name: string
  readonly book: string | null
  readonly since: string
  readonly readUpTo: string | null
}

export async function observeFollowers<Tx>(
  looking: Looking<Tx>,
): Promise<readonly ObservedFollower[]> {
  const stored = await ask<Tx, StoredFollower[]>(looking, readFollowers(looking.schema))
  return stored.map(({ name, book, since, readUpTo }) => ({
    name,
    ...(book === null ? {} : { book }),
    since: isoOf(since),
    ...(readUpTo === null ? {} : { readUpTo: isoOf(readUpTo) }),
  }))
}
