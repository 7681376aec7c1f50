/** Limits and questions: what is a call of its own. */

import { accountOf, balanceOf, canGive, limitOf, type Standing, zero } from './ledger-accounts.ts'
import { windowAt } from './ledger-calendar.ts'
import type { Answer, Single } from './ledger-command.ts'
import { type LedgerModel, msOf } from './ledger-model.ts'
import { conflict } from './ledger-model-replay.ts'

/** Sets the limit of a key, from now on and in windows to come, or hands it back. */
export function setLimit(model: LedgerModel, command: Single & { act: 'limit' }): Answer {
  const { accounts, applied, options } = model
  const { id, key, limit, pinned } = command
  const terms = options.termsOf(key)
  const base = accounts.open(key, key, terms, limit)
  const asked = pinned ? limit : -1
  const past = applied.get(id)
  const [line] = past?.lines ?? []
  if (past !== undefined && line !== undefined) {
    const field =
      line.kind !== 'limit'
        ? 'kind'
        : line.key !== key
          ? 'key'
          : line.amount !== asked
            ? 'limit'
            : undefined
    if (field !== undefined) {
      const stood = accounts.look(accounts.nameAt(key, terms), key) ?? zero
      const lines = [{ ...accountOf(stood), refusal: 'conflict' as const }]
      return { ...conflict(1, field), lines, ...noTimes }
    }
    const { answer } = line
    return { ...accepted, replayed: true, lines: [answer], ...noTimes, at: msOf(line.at) }
  }
  const carriers: Standing[] = [base]
  if (terms.unit !== undefined) {
    const { end } = windowAt(terms.unit, terms.zone ?? 'UTC', accounts.now)
    for (const at of [accounts.now, end]) {
      carriers.push(accounts.open(accounts.nameAt(key, terms, at), key, terms, limit, at))
    }
  }
  for (const standing of carriers) if (standing.dueAt <= accounts.now) accounts.fallDue(standing)
  for (const standing of carriers) {
    standing.allowance = limit
    standing.pinned = pinned
    standing.movedAt = Math.max(standing.movedAt, accounts.now)
    accounts.write(standing, { kind: 'limit', operation: id })
  }
  // Of the current window, if there are any.
  const spokenOf = carriers[1] ?? base
  const answer = { ...accountOf(spokenOf), refusal: undefined }
  applied.set(id, {
    lines: [
      {
        kind: 'limit',
        key,
        account: spokenOf.name,
        amount: asked,
        of: undefined,
        sequence: spokenOf.sequence,
        answer,
        at: spokenOf.movedAt,
        returned: 0,
      },
    ],
    note: 0,
  })
  return { ...accepted, replayed: false, lines: [answer], ...noTimes, at: msOf(spokenOf.movedAt) }
}

const accepted = { ok: true, reason: undefined, field: undefined, state: undefined } as const
const noTimes = { at: undefined, expiresAt: undefined, retryAt: undefined }

/** What an operation would find; the same words as `peek` of a quota. */
export function peek(model: LedgerModel, command: Single & { act: 'peek' }): unknown {
  const { accounts, options } = model
  const { key, amount, allowance } = command
  const terms = options.termsOf(key)
  const { unit, zone = 'UTC', everyUs, burst, rolling } = terms
  const name = accounts.nameAt(key, terms)
  const standing = accounts.look(name, key)
  const limit = burst ?? allowance
  const due = accounts.openParts(name).filter(({ expiresAt }) => expiresAt <= accounts.now)
  const freed = due.reduce((sum, part) => sum + part.amount, 0)
  const then = standing && { ...standing, held: standing.held - freed }
  const allowed = limitOf(then, limit, everyUs)
  const available = canGive(then, limit, everyUs, accounts.now)
  const held = rolling === true ? 0 : (then?.held ?? 0)
  const line = { account: name, limit, everyUs, terms }
  const window = unit === undefined ? undefined : windowAt(unit, zone, accounts.now)
  // Counted with what is due: that leaves first.
  const shortage = amount - available + freed
  const retryAt =
    available >= amount || amount > allowed
      ? undefined
      : rolling === true
        ? accounts.freedAt(name, shortage)
        : model.retryAt(line, then, amount)
  return {
    limit: allowed,
    limitIsSet: then?.pinned ?? false,
    available,
    used: allowed - available - held,
    held,
    window: window && { start: msOf(window.start), end: msOf(window.end) },
    retryAt: msOf(retryAt),
    sequence: then?.sequence ?? 0,
  }
}

/** What a key stands at; the same words as `ledger.balance`. */
export function balance({ accounts }: LedgerModel, key: string): unknown {
  const windows = [...accounts.all()].filter(
    (one) => one.key === key && one.window !== undefined && one.window.start <= accounts.now,
  )
  const latest = windows.toSorted((a, b) => startOf(b) - startOf(a))[0]
  const isOver = (latest?.window?.end ?? -Infinity) <= accounts.now
  const standing = isOver ? accounts.get(key) : latest
  const { window, dueAt = Infinity, movedAt = -Infinity } = standing ?? {}
  const account = accountOf(standing ?? zero)
  return {
    available: balanceOf(account) + account.allowance,
    ...account,
    at: movedAt === -Infinity ? undefined : msOf(movedAt),
    window: window && { start: msOf(window.start), end: msOf(window.end) },
    due: dueAt <= accounts.now,
  }
}

function startOf({ window }: Standing): number {
  return window?.start ?? -Infinity
}

/** The grants of a key, as texts in any order; what is due is booked first. */
export function grantsOf({ accounts }: LedgerModel, key: string): string[] {
  const standing = accounts.get(key)
  if (standing !== undefined && standing.dueAt <= accounts.now) accounts.fallDue(standing)
  return (accounts.grants.get(key)?.all ?? []).map((grant) => {
    const { priority, amount, remaining, lapsed, state, rank, onlyFor } = grant
    const ends = rank === Infinity ? 'never' : msOf(rank)
    return `${priority} ${amount} ${remaining} ${lapsed} ${state} ${ends} ${String(onlyFor)}`
  })
}
