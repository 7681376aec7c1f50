/** The commands of the model as operations of the library. */

import { operationUuid } from '../../src/ledger/account-id.ts'
import { together } from '../../src/ledger/book.ts'
import { flags, kinds, type Line, type Operation } from '../../src/ledger/operation.ts'
import { termsText } from '../../src/credits/grant-terms.ts'
import {
  type Command,
  featureOf,
  type GrantCommand,
  type KeyTerms,
  type MoveLine,
} from './ledger-command.ts'

export const book = 'model'
const aWhileMs = 3_600_000
const longMs = 1_000 * aWhileMs

/** Both kinds of operation ids: those that are UUIDs, and those that are hashed. */
export function nameOf(id: number): string {
  return id % 2 === 0
    ? `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`
    : `operation ${id}`
}

export function operationOf(
  command: Command,
  scope: string,
  termsOf: (key: string) => KeyTerms,
  holdId: (operation: number) => string,
): Operation {
  switch (command.act) {
    case 'move': {
      const { id, lines, note } = command
      const feature = featureOf(note)
      return together(
        lines.map((line) => ({ line: lineOf(command, line, termsOf(line.key)) })),
        { operationId: nameOf(id), scope, ...(feature && { note: { note }, feature }) },
      )
    }
    case 'refund': {
      const { id, of, key, amount, allowance } = command
      const line = { ...refund(key, amount, of), allowance: String(allowance) }
      return together([{ line }], { operationId: nameOf(id), scope })
    }
    case 'grant': {
      const { id, key, amount } = command
      const line = { kind: kinds.grant, book, key, amount: String(amount), terms: terms(command) }
      return together([{ line }], { operationId: nameOf(id), scope })
    }
    case 'void': {
      const { id, key, grant } = command
      const line = { kind: kinds.void, book, key, amount: '0', ref: operationUuid(nameOf(grant)) }
      return together([{ line }], { operationId: nameOf(id), scope })
    }
    case 'settle':
    case 'release':
    case 'extend':
      return endOf(command, scope, holdId(command.hold))
  }
}

function refund(key: string, amount: number, of: number): Line {
  const ref = operationUuid(nameOf(of))
  return { kind: kinds.refund, book, key, amount: String(amount), ref }
}

function lineOf(
  command: Command & { act: 'move' },
  { kind, key, amount, of = -1, bare }: MoveLine,
  { walled, rolling, everyUs, burst, unit, zone }: KeyTerms,
): Line {
  if (kind === 'refund') return refund(key, amount, of)
  const { allowance, due, ttlMs = due ? aWhileMs : longMs, stickyMs } = command
  const takes = kind === 'debit' || kind === 'hold'
  const bits =
    (walled === true ? flags.walled : 0) |
    (rolling === true ? flags.rolling : 0) |
    (kind === 'adjust' && walled !== true ? flags.unchecked : 0) |
    (stickyMs === undefined ? 0 : flags.sticky)
  const lives = kind === 'hold' ? ttlMs : stickyMs
  return {
    kind: kinds[kind],
    book,
    key,
    amount: String(amount),
    flags: bits,
    ...(bare === true ? {} : { allowance: String(takes ? (burst ?? allowance) : allowance) }),
    ...(lives === undefined ? {} : { ttlMs: lives }),
    ...(everyUs === undefined || !takes ? {} : { everyUs: String(everyUs) }),
    ...(unit === undefined ? {} : { unit, zone }),
  }
}

function terms(command: GrantCommand): string {
  const { priority, effectiveAt, expiresAt, expiresInMs, rollover, onlyFor } = command
  return termsText({
    priority,
    ...(effectiveAt === undefined ? {} : { effectiveAt: new Date(effectiveAt / 1_000) }),
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt / 1_000) }),
    ...(expiresInMs === undefined ? {} : { expiresIn: expiresInMs }),
    ...(rollover === undefined ? {} : { rollover: { limit: rollover.limit, for: rollover.forMs } }),
    ...(onlyFor === undefined ? {} : { onlyFor }),
  })
}

function endOf(
  command: Command & { act: 'settle' | 'release' | 'extend' },
  scope: string,
  ref: string,
): Operation {
  const { act, parts } = command
  const bits = act === 'settle' ? flags.overrun[command.overrun] | flags.late[command.late] : 0
  const line: Line = {
    kind: kinds[act],
    book,
    ref,
    flags: bits,
    ...(act === 'extend' ? { ttlMs: command.ttlMs ?? longMs } : {}),
  }
  if (parts !== undefined) {
    const lines = parts.map(({ key, amount }) => ({
      ...line,
      key,
      scope,
      ...(amount === undefined || act !== 'settle' ? {} : { amount: String(amount) }),
    }))
    return { book, lines }
  }
  const amount = act === 'settle' ? command.amount : undefined
  return { book, lines: [amount === undefined ? line : { ...line, amount: String(amount) }] }
}
