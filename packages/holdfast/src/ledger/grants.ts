import { holdfastError } from '../core/errors.ts'
import { listGrants } from '../engines/postgres/ledger/grants.ts'
import type { AccountId } from './account-id.ts'
import type { Kernel } from './kernel.ts'
import type { AmountReader } from './verdict.ts'

/** `pending` has not begun; of an `active` one something may be left; the others have ended. */
export type GrantState = 'pending' | 'active' | 'expired' | 'voided'

/** An amount of credit with priority and expiry, as it is now. */
export interface Grant<A> {
  readonly id: string
  /** The operation that made it, or made the one it rolled over from. */
  readonly operationId: string
  readonly amount: A
  /** Neither spent nor held. */
  readonly remaining: A
  /** Spent or held: amount − remaining − lapsed. */
  readonly used: A
  /** Expired, voided or rolled over. */
  readonly lapsed: A
  /** Lower ones are spent first. */
  readonly priority: number
  readonly effectiveAt: Date
  /** Undefined if it never expires. */
  readonly expiresAt: Date | undefined
  readonly state: GrantState
  /** The features it can be spent on; undefined if on anything. */
  readonly onlyFor: readonly string[] | undefined
  /** The grant whose rest this is. */
  readonly rolledFrom: string | undefined
  readonly note: Readonly<Record<string, unknown>> | undefined
}

interface StoredGrant {
  readonly id: string
  readonly operationId: string
  readonly amount: string
  readonly remaining: string
  readonly lapsed: string
  readonly priority: number
  readonly effectiveAt: string
  readonly expiresAt: string | null
  readonly state: number
  readonly rolledFrom: string | null
  readonly note:
    | (Readonly<Record<string, unknown>> & { readonly onlyFor?: readonly string[] })
    | null
}

const states: readonly GrantState[] = ['pending', 'active', 'expired', 'voided']

/** How many grants are listed at most. */
const most = 1_000

/** The grants of an account, in burn order. */
export async function readGrants<Tx, A>(
  kernel: Kernel<Tx>,
  tx: Tx | undefined,
  book: string,
  account: AccountId,
  ended: boolean,
  amounts: AmountReader<A>,
): Promise<Grant<A>[]> {
  const [row] = await kernel.read(tx, (schema) => listGrants(schema, account, ended, most), book)
  const answer = row?.['answer']
  if (typeof answer !== 'string') throw holdfastError('LEDGER_ANSWER_UNREADABLE')
  return (JSON.parse(answer) as StoredGrant[]).map((stored) => grantOf(stored, amounts))
}

function grantOf<A>(stored: StoredGrant, amounts: AmountReader<A>): Grant<A> {
  const { amount, remaining, lapsed } = stored
  const { onlyFor, ...note } = stored.note ?? {}
  return {
    id: stored.id,
    operationId: stored.operationId,
    amount: amounts.read(amount),
    remaining: amounts.read(remaining),
    used: amounts.read(String(BigInt(amount) - BigInt(remaining) - BigInt(lapsed))),
    lapsed: amounts.read(lapsed),
    priority: stored.priority,
    effectiveAt: dateOf(stored.effectiveAt),
    expiresAt: stored.expiresAt === null ? undefined : dateOf(stored.expiresAt),
    state: states[stored.state] as GrantState,
    onlyFor,
    rolledFrom: stored.rolledFrom ?? undefined,
    note: stored.note === null || (onlyFor !== undefined && isEmpty(note)) ? undefined : note,
  }
}

function isEmpty(note: object): boolean {
  return Object.keys(note).length === 0
}

function dateOf(micros: string): Date {
  return new Date(Number(BigInt(micros) / 1_000n))
}
