import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { isStorableJson } from '../core/storable.ts'
import {
  amountText,
  flags,
  isKey,
  type Key,
  kinds,
  type Line,
  nameText,
  type Operation,
  signedAmountText,
} from './operation.ts'
import type { AmountReader } from './verdict.ts'
import { bigintAmounts, numberAmounts } from './verdict.ts'
import { assertSignal, objectGiven } from '../core/options/given.ts'
import { assertNoClient, type KnownOptions } from '../core/options/known-options.ts'

/** What every operation says about itself. */
export interface OperationOptions {
  /**
   * Names this operation for ever: the same id is applied once, and a repetition gets the first
   * answer. Unique within scope and book; a request id, a webhook id, a random UUID kept for retries.
   */
  readonly operationId: string
  /** What must stay together on one server. @defaultValue the key */
  readonly scope?: string
  /** Words of your own that are kept with the movement: reference, actor, reason. */
  readonly note?: Readonly<Record<string, unknown>>
  /** What it is used for, kept in the note; `ledger.usage` tells features apart. */
  readonly feature?: string
  /**
   * Longest wait for an account that somebody else's transaction has, counted from the call. Not in a transaction of
   * yours, where its own `lock_timeout` counts. @defaultValue '10 s', or what `createHoldfast` was given
   */
  readonly wait?: Duration
  /** Takes the operation back if it has not been sent yet; one that is under way is answered. */
  readonly signal?: AbortSignal
}

/** What takes an amount, or as much of it as there is. */
export interface TakeOptions extends OperationOptions {
  /**
   * Takes what is there if that is less, down to one unit; `taken` of the verdict says how much. A repetition takes
   * nothing more. @defaultValue false
   */
  readonly upTo?: boolean
}

/** The same in a transaction of the caller's: how long it waits is said there, by `lock_timeout` and by ending it. */
export type InTransaction<O extends OperationOptions> = Omit<O, 'wait' | 'signal'> & {
  readonly wait?: never
  readonly signal?: never
}

/** How amounts come back. Numbers are checked to be exact; bigints have no limit. */
export type AmountKind = 'number' | 'bigint'

/** The type of an amount of a book. */
export type AmountOf<K extends AmountKind> = K extends 'bigint' ? bigint : number

export function amountReader<K extends AmountKind>(kind: K): AmountReader<AmountOf<K>> {
  return (kind === 'bigint' ? bigintAmounts : numberAmounts) as AmountReader<AmountOf<K>>
}

/** Options of `line`. Without `ttl` and `of` the line takes its amount. */
export interface LineOptions {
  /** What must stay together on one server. @defaultValue the scope of the operation, else the key */
  readonly scope?: string
  /** Puts the amount aside for this long instead. */
  readonly ttl?: Duration
  /** Gives back what that operation took instead. Name the books in the order they had there. */
  readonly of?: string
}

export const amounts: readonly AmountKind[] = ['number', 'bigint']

export const operationOptions: KnownOptions<OperationOptions> = {
  operationId: 'checked',
  scope: 'checked',
  note: 'object',
  feature: 'checked',
  wait: 'checked',
  signal: 'signal',
}

export const takeOptions: KnownOptions<TakeOptions> = {
  ...operationOptions,
  upTo: 'boolean',
}

export const lineOptions: KnownOptions<LineOptions> = {
  scope: 'checked',
  ttl: 'checked',
  of: 'checked',
}

/** Options of `hold`. */
export interface HoldOptions extends OperationOptions {
  /** How long it lives if nobody ends it, on the server's clock. */
  readonly ttl: Duration
}

export const holdOptions: KnownOptions<HoldOptions> = {
  ...operationOptions,
  ttl: 'checked',
}

/** Options of `refund`. */
export interface RefundOptions extends OperationOptions {
  /** The operation that is given back, wholly or in part; never more than it took. */
  readonly of: string
}

export const refundOptions: KnownOptions<RefundOptions> = {
  ...operationOptions,
  of: 'checked',
}

/** A line that belongs to no operation yet; see `Ledger.apply`. */
export interface PreparedLine {
  readonly line: Line
  /** Called with the operation's scope when it is over, however it ended. */
  readonly after?: ((scope: string | undefined) => void) | undefined
}

/** `[tx, key, …]` and `[key, …]` are the same call, inside a transaction and outside. */
export function calledWith<Tx>(
  args: readonly unknown[],
): readonly [tx: Tx | undefined, key: Key, ...rest: unknown[]] {
  // What is missing is a key, since nobody has a transaction that is not there.
  if (args[0] === undefined || args[0] === null) nameText(args[0], 'key')
  if (args.length > 1) assertNoClient(args.at(-1))
  return isKey(args[0])
    ? [undefined, args[0], ...args.slice(1)]
    : [args[0] as Tx, args[1] as Key, ...args.slice(2)]
}

/** One line as an operation of its own. */
export function single(
  line: Omit<Line, 'key' | 'scope'>,
  key: Key,
  options: OperationOptions,
): Operation {
  const keyText = nameText(key, 'key')
  const scope = options.scope === undefined ? undefined : nameText(options.scope, 'scope')
  return {
    ...waitOf(options),
    operationId: nameText(options.operationId, 'operationId'),
    book: line.book,
    scope,
    lines: [{ ...line, key: keyText, scope, note: noteFor(line, noteOf(options)) }],
  }
}

/** How an operation waits, if it says so itself. @throws OPTION_INVALID */
function waitOf({
  wait,
  signal,
}: Pick<OperationOptions, 'wait' | 'signal'>): Pick<Operation, 'waitMs' | 'signal'> {
  if (wait === undefined && signal === undefined) return {}
  assertSignal(signal)
  return { waitMs: wait === undefined ? undefined : durationMs(wait, 'wait'), signal }
}

/** @throws LEDGER_NAME_INVALID */
function noteOf({ note, feature }: Pick<OperationOptions, 'note' | 'feature'>): string | undefined {
  if (feature === undefined) return noteText(note)
  return noteText({ ...note, feature: nameText(feature, 'feature') })
}

/** What may go beyond its limit says so: `audit` would take it for a mistake. */
function noteFor(
  { kind, flags: bits = 0 }: Pick<Line, 'kind' | 'flags'>,
  note?: string,
): string | undefined {
  const isBeyond = (bits & flags.unchecked) !== 0 && (kind === kinds.debit || kind === kinds.hold)
  return isBeyond ? JSON.stringify({ ...JSON.parse(note ?? '{}'), overage: true }) : note
}

export function noteText(note: OperationOptions['note']): string | undefined {
  if (note === undefined) return undefined
  const text = jsonOf(objectGiven(note, 'note'))
  if (text === undefined) throw badNote('note must be something that JSON can hold')
  if (!isStorableJson(text)) throw badNote('note contains NUL or half a surrogate pair')
  return text
}

/** Nothing if it has a bigint in it, or itself. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

function badNote(subject: string): Error {
  return holdfastError('LEDGER_NAME_INVALID', { details: { field: 'note', subject } })
}

/**
 * Lines as one operation. Lines for the same account become one, so that a check sees their sum and
 * a lock is asked for once.
 */
export function together(
  prepared: readonly PreparedLine[],
  options: OperationOptions & { readonly acrossScopes?: boolean },
): Operation {
  const scope = options.scope === undefined ? undefined : nameText(options.scope, 'scope')
  const lines = mergedLines(prepared, scope, noteOf(options))
  const [first] = lines
  if (first === undefined) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'lines', subject: 'an operation needs a line' },
    })
  }
  const scopes = new Set(lines.map((line) => line.scope ?? line.key))
  const home = scope ?? first.scope ?? first.key
  const spread = scopes.size > 1 || !scopes.has(home)
  if (spread && (options.acrossScopes !== true || lines.some(({ kind }) => kind === kinds.hold))) {
    throw holdfastError('LEDGER_SCOPES')
  }
  return {
    ...waitOf(options),
    operationId: nameText(options.operationId, 'operationId'),
    book: first.book,
    scope: home,
    lines,
  }
}

/** What lines must share to become one. */
const mergeable = ['terms', 'ttlMs', 'flags'] as const

/** Lines with scope and note, those for the same account as one. */
export function mergedLines(
  prepared: readonly PreparedLine[],
  scope: string | undefined,
  note: string | undefined,
): Line[] {
  const merged = new Map<string, Line>()
  for (const each of prepared) {
    const { line } = (each ?? {}) as Partial<PreparedLine>
    if (line === undefined) {
      throw holdfastError('OPTION_INVALID', {
        details: {
          option: 'lines',
          subject: 'lines are what line() of a book resolves with: await it',
        },
      })
    }
    const placed = { ...line, scope: line.scope ?? scope, note: noteFor(line, line.note ?? note) }
    const { kind, book, key, unit, zone, ref } = line
    const id = JSON.stringify([kind, book, key, placed.scope, unit, zone, ref])
    const same = merged.get(id)
    if (same !== undefined && mergeable.some((part) => same[part] !== line[part])) {
      throw holdfastError('OPTION_INVALID', {
        details: {
          option: 'lines',
          subject:
            'two lines for one key differ in more than their amount (ttl, or terms of a grant)',
        },
      })
    }
    merged.set(id, same === undefined ? placed : { ...same, amount: sumOf(same, placed) })
  }
  return [...merged.values()]
}

function sumOf(one: Line, other: Line): string | undefined {
  if (one.amount === undefined || other.amount === undefined) return undefined
  const sum = BigInt(one.amount) + BigInt(other.amount)
  return one.kind === kinds.adjust ? signedAmountText(sum) : amountText(sum, 'amount', 0n)
}
