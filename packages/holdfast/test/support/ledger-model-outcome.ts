/** What one line would do to its account, or why not. */

import type { GrantsModel } from './grants-model.ts'
import { balanceOf, canGive, type HoldPart, limitOf, type Standing } from './ledger-accounts.ts'
import type { Answer, Refusal } from './ledger-command.ts'
import type { Asked } from './ledger-model-lines.ts'

export interface Outcome {
  readonly refusal?: Refusal
  readonly field?: string
  readonly state?: Answer['state']
  readonly credit: number
  readonly debit: number
  readonly hold: number
  /** The limit in force. */
  readonly allowed: number
  readonly available: number
  /** What was left out of that, being for other features. */
  readonly apart: number
  /** Of a rate: what flowed in, and up to when it is filled then. */
  readonly flow?: number
  readonly refilledAt?: number | undefined
  /** When what it makes falls due. */
  readonly until?: number | undefined
  /** Ended before in the same way. */
  readonly replayed?: HoldPart['ended']
  /** Accepted without a movement. */
  readonly quiet?: true
  /** What the hold is settled with. */
  readonly settled?: number
}

/** What the decision looks at besides its account. */
export interface Around {
  readonly now: number
  readonly grants: GrantsModel | undefined
  /** What lines before this one, of the same operation, brought to the account. */
  readonly incoming: number
  /** What is left to give back of an operation on this account; undefined if it took nothing there. */
  readonly returnable: (of: number, account: string) => number | undefined
}

const largest = Number.MAX_SAFE_INTEGER

export function outcomeOf(line: Asked, standing: Standing, around: Around): Outcome {
  const allowed = limitOf(standing, line.limit, line.everyUs)
  const apart = apartFrom(line, around)
  const available = canGive(standing, line.limit, line.everyUs, around.now) - apart
  const base = { credit: 0, debit: 0, hold: 0, allowed, available, apart }
  const outcome = decide(
    line,
    standing,
    { ...base, ...filled(line, standing, base, around) },
    around,
  )
  const { credit, debit, hold, refusal, replayed, quiet } = outcome
  const isTooLarge =
    standing.credited + credit + allowed > largest ||
    standing.debited + debit + standing.held + hold > largest
  if (refusal === undefined && replayed === undefined && quiet === undefined && isTooLarge) {
    return { ...outcome, refusal: 'too-large' }
  }
  return outcome
}

/** What is for other features, and what comes in: that may be so too, or lapse. */
function apartFrom({ feature }: Asked, { grants, incoming }: Around): number {
  if (grants === undefined) return 0
  return grants.apart(feature) + incoming
}

/** A rate is filled first: by what the time brought; what was given back on top of full is spilt. */
function filled(
  { everyUs }: Asked,
  standing: Standing,
  { allowed, available }: Outcome,
  { now }: Around,
): Partial<Outcome> {
  if (everyUs === undefined) return {}
  const balance = balanceOf(standing)
  const flow = available - balance
  const since = standing.refilledAt ?? -Infinity
  return {
    flow,
    credit: Math.max(flow, 0),
    debit: Math.max(-flow, 0),
    refilledAt: flow === allowed - balance ? Math.max(now, since) : since + flow * everyUs,
  }
}

function decide(line: Asked, standing: Standing, base: Outcome, around: Around): Outcome {
  const { kind, amount } = line
  const { available, credit, debit } = base
  switch (kind) {
    case 'debit':
      return { ...base, debit: debit + amount, ...short(available < amount) }
    case 'hold': {
      const until = around.now + (line.ttlMs ?? 0) * 1_000
      return { ...base, hold: amount, until, ...short(available < amount) }
    }
    case 'adjust':
      // Booked whatever the balance, but never through a wall.
      return amount > 0
        ? { ...base, credit: credit + amount }
        : { ...base, debit: debit - amount, ...short(standing.walled && available < -amount) }
    case 'credit':
    case 'opening':
    case 'return':
      return { ...base, credit: credit + amount }
    case 'refund': {
      const rest = around.returnable(line.of ?? -1, standing.name)
      if (rest === undefined) return { ...base, refusal: 'not-found' }
      return { ...base, credit: amount, ...(rest < amount && { refusal: 'over-refund' }) }
    }
    case 'grant':
      return granting(line, base, around)
    case 'void':
      return voiding(line, base, around)
    case 'settle':
      return settling(line, standing, base)
    case 'release':
    case 'extend':
      return ending(line, base, around)
  }
}

function short(isShort: boolean): { refusal?: Refusal } {
  return isShort ? { refusal: 'insufficient' } : {}
}

function granting({ grant }: Asked, base: Outcome, { now }: Around): Outcome {
  if (grant === undefined) return base
  const { effectiveAt, expiresAt, expiresInMs, amount } = grant
  if (effectiveAt !== undefined && effectiveAt > now) return { ...base, until: effectiveAt }
  const until = expiresAt ?? (expiresInMs === undefined ? undefined : now + expiresInMs * 1_000)
  return { ...base, credit: amount, until }
}

function voiding({ voids }: Asked, base: Outcome, { grants }: Around): Outcome {
  const grant = grants?.find(String(voids))
  if (grant === undefined) return { ...base, refusal: 'not-found' }
  const { state, remaining } = grant
  if (state === 'expired' || state === 'voided') return { ...base, refusal: 'ended', state }
  return { ...base, debit: state === 'pending' ? 0 : remaining }
}

function ending({ kind, part, ttlMs }: Asked, base: Outcome, { now }: Around): Outcome {
  if (part === undefined) return { ...base, refusal: 'not-found' }
  const { state, ended, amount, expiresAt } = part
  if (kind === 'release' && state === 'released') return { ...base, replayed: ended }
  if (state !== 'open') return { ...base, refusal: 'ended', state }
  if (kind === 'release') return { ...base, hold: -amount }
  return { ...base, quiet: true, until: Math.max(expiresAt, now + (ttlMs ?? 0) * 1_000) }
}

function settling({ part, settle }: Asked, standing: Standing, base: Outcome): Outcome {
  if (part === undefined || settle === undefined) return { ...base, refusal: 'not-found' }
  const { overrun, late } = settle
  const wanted = settle.amount ?? part.amount
  const amount = overrun === 'cap' ? Math.min(wanted, part.amount) : wanted
  const isLate = part.state === 'expired'
  if (part.state === 'settled' || part.state === 'settled-late') {
    return part.settled === amount
      ? { ...base, replayed: part.ended }
      : { ...base, refusal: 'conflict', field: 'amount' }
  }
  if (part.state === 'released') return { ...base, refusal: 'ended', state: part.state }
  // After expiry the held amount has gone back already.
  const hold = isLate ? 0 : -part.amount
  const fits = base.available - hold >= amount
  if (isLate && (late === 'refuse' || (standing.walled && !fits))) {
    return { ...base, refusal: 'ended', state: 'expired' }
  }
  if (isLate && late === 'ignore') return { ...base, quiet: true }
  const isBounded = overrun === 'available' || standing.walled
  if (amount > part.amount && (overrun === 'refuse' || (isBounded && !fits))) {
    return { ...base, debit: amount, hold, refusal: 'insufficient' }
  }
  return { ...base, debit: amount, hold, settled: amount }
}
