/** What the model of the ledger is told and what it answers; the player says the same to a real one. */

export type Move = 'credit' | 'debit' | 'hold' | 'adjust' | 'opening' | 'return' | 'refund'

/** One account's part of a move. */
export interface MoveLine {
  readonly kind: Move
  readonly key: string
  /** Below zero only to adjust. */
  readonly amount: number
  /** Of a refund: the operation. */
  readonly of?: number
  /** Brings no limit along. */
  readonly bare?: true
}

export type Overrun = 'book' | 'refuse' | 'cap' | 'available'
export type Late = 'book' | 'refuse' | 'ignore'
export type Unit = 'minute' | 'hour' | 'day' | 'week' | 'month'

/** What a key is, for as long as it is used. */
export interface KeyTerms {
  /** Never below zero. */
  readonly walled?: true
  /** What is used is a hold that leaves the window by itself. */
  readonly rolling?: true
  /** A bucket of `burst` that fills up by itself, one in so many microseconds. */
  readonly everyUs?: number
  readonly burst?: number
  /** Calendar windows. */
  readonly unit?: Unit
  readonly zone?: string
}

/** A part of a hold; without an amount all of it. */
export interface Part {
  readonly key: string
  readonly amount?: number
}

interface Settling {
  readonly act: 'settle'
  readonly hold: number
  readonly amount: number | undefined
  readonly overrun: Overrun
  readonly late: Late
  readonly parts?: readonly Part[]
}

/** The terms of a grant; moments are microseconds since 1970. */
export interface GrantCommand {
  readonly act: 'grant'
  readonly id: number
  readonly key: string
  readonly amount: number
  readonly priority: number
  readonly effectiveAt?: number
  readonly expiresAt?: number
  readonly expiresInMs?: number
  readonly rollover?: { readonly limit: number; readonly forMs: number }
  readonly onlyFor?: readonly string[]
}

/** Operations are named by small numbers, and a hold by the operation that made it. */
export type Command =
  | {
      readonly act: 'move'
      readonly id: number
      readonly lines: readonly MoveLine[]
      readonly allowance: number
      /** A hold that expires soon if it is not extended. */
      readonly due: boolean
      /** Unless it is 0, it stands for a feature as well. */
      readonly note: number
      /** How long holds live, if that is not up to `due`. */
      readonly ttlMs?: number
      /** A refusal is remembered, for so long. */
      readonly stickyMs?: number
    }
  | {
      readonly act: 'refund'
      readonly id: number
      readonly of: number
      readonly key: string
      readonly amount: number
      readonly allowance: number
    }
  | Settling
  | {
      readonly act: 'release' | 'extend'
      readonly hold: number
      readonly ttlMs?: number
      readonly parts?: readonly Part[]
    }
  | GrantCommand
  | { readonly act: 'void'; readonly id: number; readonly key: string; readonly grant: number }

/** Questions, limits and the clock: each is a call of its own. */
export type Single =
  | {
      readonly act: 'limit'
      readonly id: number
      readonly key: string
      readonly limit: number
      /** False hands the key back to what operations bring along. */
      readonly pinned: boolean
    }
  | {
      readonly act: 'peek'
      readonly key: string
      readonly amount: number
      readonly allowance: number
    }
  | { readonly act: 'balance' | 'grants'; readonly key: string }
  | { readonly act: 'sweep' }
  /** The server's clock shows this from now on; it may go back. */
  | { readonly act: 'clock'; readonly us: number }

export type Refusal =
  | 'insufficient'
  | 'conflict'
  | 'not-found'
  | 'ended'
  | 'over-refund'
  | 'too-large'
export type HoldState = 'open' | 'settled' | 'released' | 'expired' | 'settled-late'

export interface Account {
  credited: number
  debited: number
  held: number
  allowance: number
  sequence: number
}

export interface AnswerLine extends Account {
  readonly refusal: Refusal | undefined
}

export interface Answer {
  readonly ok: boolean
  readonly replayed: boolean
  readonly reason: Refusal | undefined
  readonly field: string | undefined
  readonly state: HoldState | 'voided' | undefined
  readonly lines: readonly AnswerLine[]
  /** Of a refusal: how much of what is there was for other features. */
  readonly apart?: number
  /** Times are told only where the clock is known to the microsecond; they are in milliseconds. */
  readonly at?: number | undefined
  readonly expiresAt?: number | undefined
  readonly retryAt?: number | undefined
}

export interface Movement {
  readonly kind: Move | 'settle' | 'release' | 'expire' | 'grant' | 'lapse' | 'void' | 'limit'
  readonly operation: number
  readonly credit: number
  readonly debit: number
  readonly hold: number
  readonly after: Readonly<Account>
}

export function featureOf(note: number): string | undefined {
  return note === 0 ? undefined : `feature ${note}`
}

/** The lines of a command that has an id of its own. */
export function linesOf(
  command: Command,
): readonly { kind: string; key: string; amount: number; of?: number }[] {
  switch (command.act) {
    case 'move':
      return command.lines
    case 'refund':
    case 'grant':
      return [{ ...command, kind: command.act }]
    case 'void':
      return [{ kind: 'void', key: command.key, amount: 0 }]
    case 'settle':
    case 'release':
    case 'extend':
      return []
  }
}

/** A command as a reader of a failed run wants to see it. */
export function wordsOf(command: Command | Single): string {
  switch (command.act) {
    case 'move':
      return moveWords(command)
    case 'refund': {
      const { id, of, key, amount, allowance } = command
      return `#${id}: refund ${key} ${amount} of #${of}${allowance === 0 ? '' : ` allowing ${allowance}`}`
    }
    case 'settle': {
      const { hold, amount, overrun, late, parts } = command
      return `settle hold #${hold}${partWords(parts)} at ${amount ?? 'its amount'}, overrun ${overrun}, late ${late}`
    }
    case 'release':
    case 'extend': {
      const { act, hold, parts, ttlMs } = command
      return `${act} hold #${hold}${partWords(parts)}${ttlMs === undefined ? '' : ` for ${ttlMs} ms`}`
    }
    case 'clock':
      return `clock ${new Date(Math.floor(command.us / 1_000)).toISOString()} (${command.us})`
    case 'grant':
    case 'void':
    case 'limit':
    case 'peek':
    case 'balance':
    case 'grants':
    case 'sweep': {
      const { act, ...rest } = command
      return `${act} ${JSON.stringify(rest)}`
    }
  }
}

function moveWords(command: Command & { act: 'move' }): string {
  const { id, lines, allowance, due, note, ttlMs, stickyMs } = command
  const words = lines
    .map(({ kind, key, amount, of, bare }) => {
      const source = of === undefined ? '' : ` of #${of}`
      return `${kind} ${key} ${amount}${source}${bare === true ? ' bare' : ''}`
    })
    .join(' + ')
  const rest = [
    allowance === 0 ? '' : ` allowing ${allowance}`,
    due && lines.some(({ kind }) => kind === 'hold') ? ' for a while' : '',
    ttlMs === undefined ? '' : ` for ${ttlMs} ms`,
    stickyMs === undefined ? '' : ` refused for ${stickyMs} ms`,
    note === 0 ? '' : ` note ${note}`,
  ]
  return `#${id}: ${words}${rest.join('')}`
}

function partWords(parts: readonly Part[] | undefined): string {
  if (parts === undefined) return ''
  return ` (${parts.map(({ key, amount }) => `${key} ${amount ?? 'all'}`).join(', ')})`
}
