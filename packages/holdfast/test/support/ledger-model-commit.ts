/** What is done once all lines of an operation may: movements, holds and grants. */

import { GrantsModel } from './grants-model.ts'
import {
  type Accounts,
  accountOf,
  balanceOf,
  type Change,
  type HoldPart,
  type Standing,
} from './ledger-accounts.ts'
import type { Account, Command, GrantCommand } from './ledger-command.ts'
import type { Asked } from './ledger-model-lines.ts'
import type { Outcome } from './ledger-model-outcome.ts'
import type { Applied, AppliedLine } from './ledger-model-replay.ts'

/** What one line did. */
export interface Step {
  readonly line: Asked
  readonly standing: Standing | undefined
  readonly outcome: Outcome
  /** Its movement, if it has one: what, and with which number. */
  readonly change?: Change
  readonly sequence?: number
  /** The account after it. */
  after?: Account
  /** Of a refusal: when it may fit. */
  readonly retryAt?: number | undefined
  /** The allowance that its answer shows. */
  readonly shown: number
}

interface Books {
  readonly accounts: Accounts
  readonly applied: ReadonlyMap<number, Applied>
}

type Settled = ReadonlyMap<HoldPart, number>

/** The lines of an operation that took something from an account, and what is left of each to give back. */
export function takenBy(
  { accounts, applied }: Books,
  of: number,
  account: string,
  settled: Settled,
): { readonly line: AppliedLine; readonly rest: number }[] {
  const part = accounts.holds.get(of)?.find((one) => one.account === account)
  const costs = part === undefined ? 0 : (settled.get(part) ?? 0)
  return (applied.get(of)?.lines ?? [])
    .filter(
      (line) =>
        line.account === account &&
        line.isRefused === undefined &&
        (line.kind === 'debit' ||
          line.kind === 'hold' ||
          (line.kind === 'adjust' && line.amount < 0)),
    )
    .map((line) => ({
      line,
      rest: (line.kind === 'hold' ? costs : Math.abs(line.amount)) - line.returned,
    }))
}

export function commit(
  books: Books,
  command: Command,
  steps: readonly Step[],
  settled: Settled,
): void {
  const { accounts } = books
  for (const { change, standing, after } of steps) {
    if (change !== undefined && standing !== undefined && after !== undefined) {
      accounts.note(standing, change, after)
    }
  }
  makeHolds(accounts, command, steps)
  for (const step of steps) {
    const { standing, change } = step
    if (standing === undefined || change === undefined) continue
    const lapsed = moveGrants(books, step, settled)
    if (lapsed === 0) continue
    // What came back to a grant that has ended is gone.
    accounts.write(standing, { kind: 'lapse', operation: change.operation, debit: lapsed })
    const after = accountOf(standing)
    // Told with the movement right before it.
    const told = steps.find(
      (each) => each.standing === standing && (each.sequence ?? 0) + 1 === standing.sequence,
    )
    if (told !== undefined) told.after = after
    if (step.line.part !== undefined) step.line.part.ended = { ...after, at: standing.movedAt }
  }
}

function makeHolds(accounts: Accounts, command: Command, steps: readonly Step[]): void {
  const held = steps.filter(({ line }) => line.kind === 'hold')
  if (held.length === 0 || !('id' in command)) return
  accounts.holds.set(
    command.id,
    held.map(({ line, outcome, sequence = 0 }) => ({
      operation: command.id,
      account: line.account as string,
      key: line.key,
      amount: line.amount,
      made: sequence,
      feature: line.feature,
      expiresAt: outcome.until ?? 0,
      state: 'open',
      settled: 0,
    })),
  )
}

/** What a movement does to the grants of its account, if it has any; answers how much lapsed. */
function moveGrants(books: Books, step: Step, settled: Settled): number {
  const { line, standing, change, sequence = 0 } = step
  if (standing === undefined || change === undefined) return 0
  const { credit = 0, debit = 0, hold = 0 } = change
  let grants = books.accounts.grants.get(standing.name)
  if (line.kind === 'refund') return giveBack(books, line, standing.name, sequence, grants, settled)
  if (line.grant !== undefined) {
    if (grants === undefined) {
      const before = balanceOf(step.after as Account) - credit
      grants = new GrantsModel(0, Math.max(-before, 0))
      books.accounts.grants.set(standing.name, grants)
      if (before > 0) grants.credit(before, sequence)
    }
    return openGrant(grants, line.grant, sequence, books.accounts.now)
  }
  if (grants === undefined) return 0
  if (line.voids !== undefined) {
    grants.end(String(line.voids), false)
    return 0
  }
  if (line.part !== undefined) {
    const back = -hold - debit
    const made = String(line.part.made)
    if (back > 0) return grants.giveBack(made, back, sequence)
    grants.draw(made, -back, line.feature)
  } else if (credit > 0) grants.credit(credit, sequence)
  else grants.draw(String(sequence), debit + hold, line.feature)
  return 0
}

/** To each line of the operation what it took, until all is given back. */
function giveBack(
  books: Books,
  { of = -1, amount }: Asked,
  account: string,
  sequence: number,
  grants: GrantsModel | undefined,
  settled: Settled,
): number {
  let rest = amount
  let lapsed = 0
  for (const taken of takenBy(books, of, account, settled)) {
    const share = Math.min(rest, taken.rest)
    if (share === 0) continue
    taken.line.returned += share
    rest -= share
    lapsed += grants?.giveBack(String(taken.line.sequence), share, sequence) ?? 0
  }
  return lapsed
}

function openGrant(grants: GrantsModel, grant: GrantCommand, ordinal: number, now: number): number {
  const {
    id,
    amount,
    priority,
    effectiveAt = now,
    expiresAt,
    expiresInMs,
    rollover,
    onlyFor,
  } = grant
  const begins = Math.max(effectiveAt, now)
  const lasts = expiresInMs === undefined ? Infinity : begins + expiresInMs * 1_000
  const rank = expiresAt ?? lasts
  const isPending = begins > now
  const isLate = !isPending && rank <= now
  grants.add(
    {
      name: String(id),
      amount,
      priority,
      rank,
      ordinal,
      begins,
      rollover: rollover?.limit ?? 0,
      rolloverFor: rollover === undefined ? undefined : rollover.forMs * 1_000,
      onlyFor,
    },
    isPending ? 'pending' : isLate ? 'expired' : 'active',
  )
  return isLate ? amount : 0
}
