import { bucketOf } from '../../core/bucket.ts'
import { momentText } from '../../core/options/moment-text.ts'
import {
  type AccountNames,
  dueBalance,
  readBalance,
  readHistory,
  readHolds,
} from '../../engines/postgres/ledger/reads.ts'
import { accountId } from '../account-id.ts'
import { type AmountKind, type AmountOf, amountReader } from '../book.ts'
import { countOf, invalid } from '../calendar.ts'
import type { Kernel } from '../kernel.ts'
import { type Key, nameText } from '../operation.ts'
import {
  type AccountBalance,
  type CreditBalance,
  type HistoryOptions,
  historyOptions,
  type HoldsOptions,
  holdsOptions,
  type LedgerReads,
  type Movement,
  type MovementKind,
  type ReadOptions,
  readOptions,
} from './reading.ts'
import {
  balanceOf,
  jsonAnswer,
  momentOf,
  type StoredBalance,
  type StoredWindow,
  windowBounds,
} from '../stored-text.ts'
import type { AmountReader } from '../verdict.ts'
import { optionsGiven } from '../../core/options/known-options.ts'

export interface StoredAccount extends StoredBalance, StoredWindow {
  readonly at: string | null
  readonly due: boolean
  readonly gone?: boolean
}

export interface StoredMovement extends StoredBalance, StoredWindow {
  readonly kind: MovementKind
  readonly at: string
  readonly credit: string
  readonly debit: string
  readonly hold: string
  readonly operation: string
  readonly holdId: string | null
  readonly grantId: string | null
  readonly note: Readonly<Record<string, unknown>> | null
}

interface StoredHold extends StoredWindow {
  readonly holdId: string
  readonly amount: string
  readonly expires: string
  readonly overdue: boolean
  readonly operation: string
}

export function createReads<Tx>(kernel: Kernel<Tx>): LedgerReads<Tx> {
  type Amounts = AmountOf<AmountKind>
  const readAccount = async (
    { tx, names }: Called<Tx>,
    moment: string | undefined,
    { amounts = 'number' }: ReadOptions<AmountKind> = {},
  ): Promise<AccountBalance<Amounts> | undefined> => {
    const rows = await kernel.read(tx, (schema) => readBalance(schema, names, moment))
    const stored = (jsonAnswer(rows) ?? unused) as StoredAccount
    if (stored.gone === true) return undefined
    return accountBalanceOf(stored, amountReader(amounts))
  }
  const reads: LedgerReads<Tx> = {
    async balance(...args: readonly unknown[]) {
      const called = calledFor<Tx>(args)
      const options = optionsGiven(
        called.rest[0] as ReadOptions<AmountKind> | undefined,
        readOptions,
      )
      return (await readAccount(called, undefined, options)) as never
    },
    async balanceAt(...args: readonly unknown[]) {
      const called = calledFor<Tx>(args, 1)
      const moment = called.rest[0] as Date
      const options = optionsGiven(
        called.rest[1] as ReadOptions<AmountKind> | undefined,
        readOptions,
      )
      return (await readAccount(called, endOf(moment), options)) as never
    },
    async history(...args: readonly unknown[]) {
      const { tx, names, rest } = calledFor<Tx>(args)
      const asked = optionsGiven(rest[0] as HistoryOptions<AmountKind> | undefined, historyOptions)
      const { amounts = 'number', before, limit = 50 } = asked
      const most = countOf(limit, 'limit')
      const below = before === undefined ? undefined : cursorOf(before)
      // One more than asked for says whether there is another page.
      const rows = await kernel.read(tx, (schema) => readHistory(schema, names, below, most + 1))
      const stored = jsonAnswer(rows) as StoredMovement[]
      const last = stored.length > most ? stored[most - 1] : undefined
      const movements = stored.slice(0, most).map((one) => movementOf(one, amountReader(amounts)))
      const next = last === undefined ? undefined : cursorText(last.start, last.seq)
      return { movements, next } as never
    },
    async holds(...args: readonly unknown[]) {
      const { tx, names, rest } = calledFor<Tx>(args)
      const asked = optionsGiven(rest[0] as HoldsOptions<AmountKind> | undefined, holdsOptions)
      const { amounts = 'number', limit = 100 } = asked
      const most = countOf(limit, 'limit')
      const rows = await kernel.read(tx, (schema) => readHolds(schema, names, most))
      const reader = amountReader(amounts)
      const holds = (jsonAnswer(rows) as StoredHold[]).map((hold) => ({
        holdId: hold.holdId,
        amount: reader.read(hold.amount),
        expiresAt: momentOf(hold.expires) as Date,
        overdue: hold.overdue,
        operationId: hold.operation,
        window: windowBounds(hold),
      }))
      return holds as never
    },
  }
  return reads
}

export function accountBalanceOf<A>(
  stored: StoredAccount,
  amounts: AmountReader<A>,
): AccountBalance<A> {
  return {
    ...balanceOf(stored, amounts),
    at: momentOf(stored.at),
    window: windowBounds(stored),
    due: stored.due,
  }
}

export function movementOf<A>(stored: StoredMovement, amounts: AmountReader<A>): Movement<A> {
  return {
    ...balanceOf(stored, amounts),
    kind: stored.kind,
    at: momentOf(stored.at) as Date,
    credit: amounts.read(stored.credit),
    debit: amounts.read(stored.debit),
    hold: amounts.read(stored.hold),
    operationId: stored.operation,
    holdId: stored.holdId ?? undefined,
    grantId: stored.grantId ?? undefined,
    note: stored.note ?? undefined,
    window: windowBounds(stored),
  }
}

/** Whose balance, and for what. */
export interface CreditsOf {
  readonly book: string
  readonly key: Key
  readonly scope?: string
  readonly feature?: string
}

/** What a key stands at once everything due is booked. */
export async function readDueBalance<Tx, A>(
  kernel: Kernel<Tx>,
  tx: Tx | undefined,
  { book, key, scope, feature }: CreditsOf,
  allowance: string,
  amounts: AmountReader<A>,
): Promise<CreditBalance<A>> {
  const names = namesOf(book, key, scope)
  const { base } = accountId(names.scope, book, names.key)
  const used = feature === undefined ? null : nameText(feature, 'feature')
  const rows = await kernel.read(tx, (schema) => dueBalance(schema, names, base, used), book)
  const stored = (jsonAnswer(rows) ?? { ...unused, apart: '0' }) as StoredAccount & {
    readonly apart: string
  }
  // That of the next operation, which brings it along.
  const balance = accountBalanceOf({ ...stored, allowance }, amounts)
  return { ...balance, spendable: amounts.less(balance.available, stored.apart) }
}

interface Called<Tx> {
  readonly tx: Tx | undefined
  readonly names: AccountNames
  readonly rest: readonly unknown[]
}

/** `[tx, book, key, …]` and `[book, key, …]` are the same call. The scope is in the last argument. */
function calledFor<Tx>(args: readonly unknown[], optionsAt = 0): Called<Tx> {
  const [tx, book, key, ...rest] = typeof args[0] === 'string' ? [undefined, ...args] : args
  const { scope } = (rest[optionsAt] ?? {}) as { readonly scope?: string }
  return {
    tx: tx as Tx | undefined,
    names: namesOf(book as string, key as Key, scope),
    rest,
  }
}

const unused: StoredAccount = {
  seq: '0',
  credited: '0',
  debited: '0',
  held: '0',
  allowance: '0',
  at: null,
  start: null,
  end: null,
  due: false,
}

function namesOf(book: string, key: Key, scope: string | undefined): AccountNames {
  const keyText = nameText(key, 'key')
  const scopeText = scope === undefined ? keyText : nameText(scope, 'scope')
  return {
    bucket: bucketOf(scopeText),
    book: nameText(book, 'book'),
    key: keyText,
    scope: scopeText,
  }
}

/** Of movements that belong to no window. */
const noWindow = '-infinity'

/** Where a page ended, as the next one is asked for. */
export function cursorText(windowStart: string | null, sequence: string): string {
  return `${windowStart ?? noWindow}.${sequence}`
}

export function cursorOf(before: string): { readonly window: string; readonly sequence: string } {
  const text = typeof before === 'string' ? before : ''
  const [, window, sequence] = /^(-infinity|-?\d{1,18})\.(\d{1,19})$/.exec(text) ?? []
  if (window === undefined || sequence === undefined) {
    throw invalid('before', 'before must be the next of an earlier page')
  }
  return { window, sequence }
}

/** All of that millisecond: a Date that came from a movement finds it again. */
function endOf(moment: Date | undefined): string | undefined {
  return moment === undefined ? undefined : momentText(moment, 'moment').replace('Z', '999Z')
}
