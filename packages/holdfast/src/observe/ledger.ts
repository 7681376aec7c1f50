import { type AccountNames, readHistory, readHolds } from '../engines/postgres/ledger/reads.ts'
import { readAccount, readBooks, readOpenHolds } from '../engines/postgres/observe/ledger.ts'
import { bucketOf } from '../core/bucket.ts'
import { assertText } from '../core/options/given.ts'
import { nameText } from '../ledger/operation.ts'
import { cursorOf, cursorText } from '../ledger/reads/reads.ts'
import { bigintAmounts } from '../ledger/verdict.ts'
import { ask, asking, lengthText, limitOf, type Looking, read, withoutNulls } from './answer.ts'
import type {
  Advice,
  BookSummary,
  ObservedAccount,
  ObservedGrant,
  ObservedHold,
  ObservedMovement,
} from './model.ts'
import type { AccountAddress, AccountReport } from './observer.ts'

interface StoredBook {
  readonly book: string
  readonly accounts: number
  readonly more: boolean
  readonly holds: number
  readonly overdue: number
  readonly moreHolds: boolean
  readonly oldestMs: number | null
}

/** So long after its end a hold should have been booked by somebody. */
const leakMs = 300_000

export async function observeBooks<Tx>(looking: Looking<Tx>): Promise<readonly BookSummary[]> {
  const stored = await ask<Tx, StoredBook[]>(looking, readBooks(looking.schema))
  return stored.map(({ book, accounts, more, holds, overdue, moreHolds, oldestMs }) => ({
    book,
    accounts,
    capped: more || moreHolds,
    openHolds: holds,
    overdueHolds: overdue,
    ...(oldestMs === null ? {} : { oldestOverdueMs: oldestMs }),
    advice: adviceOnHolds(overdue, oldestMs ?? 0),
  }))
}

function adviceOnHolds(overdue: number, oldestMs: number): Advice[] {
  if (overdue === 0 || oldestMs < leakMs) return []
  const holds = overdue === 1 ? '1 hold is' : `${overdue} holds are`
  return [
    {
      code: 'hold-leak',
      what: `${holds} overdue, the oldest for ${lengthText(oldestMs)}: nobody has used the accounts since, and nobody sweeps.`,
      fix: 'Start hf.ledger.startSweeper() in one process or more, or call hf.ledger.sweep() now and then.',
    },
  ]
}

interface StoredAccounts {
  readonly accounts: readonly Omit<ObservedAccount, 'book' | 'key' | 'scope'>[]
  readonly grants: readonly ObservedGrant[]
}

interface StoredMovement {
  readonly seq: string
  readonly kind: string
  readonly at: string
  readonly credit: string
  readonly debit: string
  readonly hold: string
  readonly credited: string
  readonly debited: string
  readonly held: string
  readonly allowance: string
  readonly operation: string
  readonly holdId: string | null
  readonly grantId: string | null
  readonly note: object | null
  readonly start: string | null
}

interface StoredHold {
  readonly holdId: string
  readonly amount: string
  readonly expires: string
  readonly overdue: boolean
  readonly operation: string
}

const mostHolds = 100

export async function observeAccount<Tx>(
  looking: Looking<Tx>,
  address: AccountAddress,
  options: { readonly movements?: number; readonly before?: string } = {},
): Promise<AccountReport> {
  const names = namesOf(address)
  const most = limitOf(options.movements ?? 50, 'movements')
  assertText(options.before, 'before')
  const below = options.before === undefined ? undefined : cursorOf(options.before)
  const { schema } = looking
  return await asking(looking, async (executor) => {
    const stored = await read<StoredAccounts>(executor, readAccount(schema, names))
    const holds = await read<StoredHold[]>(executor, readHolds(schema, names, mostHolds))
    // One more than asked for says whether there is another page.
    const moved = await read<StoredMovement[]>(
      executor,
      readHistory(schema, names, below, most + 1),
    )
    const last = moved.length > most ? moved[most - 1] : undefined
    const { book, key, scope } = names
    return {
      accounts: stored.accounts.map((account) => ({ book, key, scope, ...withoutNulls(account) })),
      holds: holds.map((hold) => holdOf(hold, names)),
      grants: stored.grants.map(withoutNulls),
      movements: moved.slice(0, most).map(movementOf),
      ...(last === undefined ? {} : { next: cursorText(last.start, last.seq) }),
    }
  })
}

function namesOf({ book, key, scope }: AccountAddress): AccountNames {
  const keyText = nameText(key, 'key')
  const scopeText = scope === undefined ? keyText : nameText(scope, 'scope')
  return {
    bucket: bucketOf(scopeText),
    book: nameText(book, 'book'),
    key: keyText,
    scope: scopeText,
  }
}

function movementOf(stored: StoredMovement): ObservedMovement {
  const { start } = stored
  return {
    sequence: stored.seq,
    at: isoOf(stored.at),
    kind: stored.kind,
    credit: stored.credit,
    debit: stored.debit,
    hold: stored.hold,
    available: availableOf(stored),
    operationId: stored.operation,
    ...(stored.holdId === null ? {} : { holdId: stored.holdId }),
    ...(stored.grantId === null ? {} : { grantId: stored.grantId }),
    ...(stored.note === null ? {} : { note: JSON.stringify(stored.note) }),
    ...(start === null ? {} : { windowStart: isoOf(start) }),
  }
}

/** What can still be taken. */
export function availableOf(
  stored: Readonly<Record<'credited' | 'debited' | 'held' | 'allowance', string>>,
): string {
  const [credited, debited, held, allowance] = [
    BigInt(stored.credited),
    BigInt(stored.debited),
    BigInt(stored.held),
    BigInt(stored.allowance),
  ]
  return String(bigintAmounts.available(credited, debited, held, allowance))
}

function holdOf(stored: StoredHold, { book, key, scope }: AccountNames): ObservedHold {
  const { holdId, amount, expires, overdue, operation } = stored
  return {
    book,
    key,
    scope,
    holdId,
    amount,
    expiresAt: isoOf(expires),
    overdue,
    operationId: operation,
  }
}

/** Microseconds since 1970 as an ISO text, to the microsecond. */
export function isoOf(micros: string): string {
  const us = BigInt(micros)
  const part = ((us % 1_000n) + 1_000n) % 1_000n
  const iso = new Date(Number((us - part) / 1_000n)).toISOString()
  return `${iso.slice(0, -1)}${String(part).padStart(3, '0')}Z`
}

export async function observeHolds<Tx>(
  looking: Looking<Tx>,
  { limit = 100 }: { readonly limit?: number } = {},
): Promise<readonly ObservedHold[]> {
  const statement = readOpenHolds(looking.schema, limitOf(limit, 'limit'))
  return (await ask<Tx, ObservedHold[]>(looking, statement)).map(withoutNulls)
}
