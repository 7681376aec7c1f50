/** What a command asks of which account. */

import type { Accounts, HoldPart } from './ledger-accounts.ts'
import {
  type Command,
  featureOf,
  type GrantCommand,
  type KeyTerms,
  type Late,
  type Move,
  type Overrun,
} from './ledger-command.ts'
import type { Applied } from './ledger-model-replay.ts'

/** One line, with everything the decision needs. */
export interface Asked {
  readonly kind: Move | 'settle' | 'release' | 'extend' | 'grant' | 'void'
  readonly key: string
  /** Undefined if there is no such hold or operation. */
  readonly account: string | undefined
  /** Undefined: all that is held. */
  readonly amount: number
  /** The limit that it brings along. */
  readonly limit?: number | undefined
  readonly everyUs?: number | undefined
  /** For opening the account, and for when to try again. */
  readonly terms: KeyTerms
  readonly sticky?: boolean
  /** What it is for. */
  readonly feature?: string | undefined
  readonly ttlMs?: number
  readonly part?: HoldPart
  /** Of a refund: the operation. */
  readonly of?: number
  readonly settle?: {
    readonly amount: number | undefined
    readonly overrun: Overrun
    readonly late: Late
  }
  readonly grant?: GrantCommand
  /** Of a void: the operation of the grant. */
  readonly voids?: number
}

export function takesAway({ kind }: Asked): boolean {
  return kind === 'debit' || kind === 'hold'
}

const aWhileMs = 3_600_000
const longMs = 1_000 * aWhileMs

/** What the lines are looked up in. */
export interface Known {
  readonly accounts: Accounts
  readonly applied: ReadonlyMap<number, Applied>
  readonly termsOf: (key: string) => KeyTerms
  readonly rankOf: (account: string) => string
}

export function askedBy(command: Command, known: Known): Asked[] {
  switch (command.act) {
    case 'move':
      return command.lines.map((line) => moveLine(command, line, known))
    case 'refund': {
      const { key, amount, of, allowance } = command
      return [{ ...refundLine(key, amount, of, known), limit: allowance }]
    }
    case 'grant':
    case 'void': {
      const { key, act } = command
      const rest = act === 'grant' ? { grant: command } : { voids: command.grant }
      const amount = act === 'grant' ? command.amount : 0
      return [{ kind: act, key, account: key, amount, terms: {}, ...rest }]
    }
    case 'settle':
    case 'release':
    case 'extend':
      return holdLines(command, known)
  }
}

function moveLine(
  command: Command & { act: 'move' },
  { kind, key, amount, of, bare }: (Command & { act: 'move' })['lines'][number],
  known: Known,
): Asked {
  if (kind === 'refund') return refundLine(key, amount, of ?? -1, known)
  const terms = known.termsOf(key)
  const takes = kind === 'debit' || kind === 'hold'
  const { ttlMs = command.due ? aWhileMs : longMs, stickyMs } = command
  return {
    kind,
    key,
    account: known.accounts.nameAt(key, terms),
    amount,
    limit:
      bare === true ? undefined : takes ? (terms.burst ?? command.allowance) : command.allowance,
    everyUs: takes ? terms.everyUs : undefined,
    terms,
    feature: featureOf(command.note),
    sticky: stickyMs !== undefined,
    ttlMs: kind === 'hold' ? ttlMs : (stickyMs ?? ttlMs),
  }
}

/** What is refunded may have been taken from a window that is over. */
function refundLine(key: string, amount: number, of: number, { applied }: Known): Asked {
  const account = applied.get(of)?.lines.find((line) => line.key === key)?.account
  return { kind: 'refund', key, account, amount, of, terms: {} }
}

function holdLines(
  command: Command & { act: 'settle' | 'release' | 'extend' },
  { accounts, rankOf }: Known,
): Asked[] {
  const { act, hold, parts } = command
  const held = accounts.holds.get(hold) ?? []
  const rest = {
    kind: act,
    amount: 0,
    terms: {},
    ...(act === 'extend' ? { ttlMs: command.ttlMs ?? longMs } : {}),
  }
  const settling = (amount: number | undefined): Pick<Asked, 'settle'> =>
    command.act === 'settle'
      ? { settle: { amount, overrun: command.overrun, late: command.late } }
      : {}
  const lineOf = (part: HoldPart, amount: number | undefined): Asked => ({
    ...rest,
    key: part.key,
    account: part.account,
    part,
    feature: part.feature,
    ...settling(amount),
  })
  const nothing = { ...rest, key: '', account: undefined }
  if (parts !== undefined) {
    return parts.map(({ key, amount }) => {
      const part = held.find((one) => one.key === key && one.account === key)
      return part === undefined ? { ...nothing, key } : lineOf(part, amount)
    })
  }
  if (held.length === 0) return [nothing]
  const amount = command.act === 'settle' ? command.amount : undefined
  return held
    .toSorted((a, b) => (rankOf(a.account) < rankOf(b.account) ? -1 : 1))
    .map((part) => lineOf(part, amount))
}
