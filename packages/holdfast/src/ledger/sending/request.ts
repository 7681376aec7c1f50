import { bucketsOf } from '../../core/bucket.ts'
import type { Statement } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'
import { type ArrayColumns, arrayColumns } from '../../engines/postgres/sql/array-columns.ts'
import { ArrayLiteral } from '../../engines/postgres/sql/array-literal.ts'
import {
  columnsOfMany,
  columnsOfPlain,
  type LedgerCalls,
} from '../../engines/postgres/ledger/ledger.ts'
import { type AccountId, accountId, earlierUuid, holdIdOf, operationUuid } from '../account-id.ts'
import { type Words, wordsOf } from '../../engines/postgres/sql/uuid-words.ts'
import type { NewLine } from '../../engines/postgres/ledger/new-lines.ts'
import { flags, kinds, type Line, type Operation } from '../operation.ts'

/** An operation with everything the database is told about it, worked out once. */
export interface Request {
  readonly operation: Operation
  /** Undefined for what is keyed by the hold it ends. */
  readonly id: string | undefined
  readonly owner: AccountId | undefined
  readonly accounts: readonly (AccountId | undefined)[]
  /** What the operation's holds will be called, if it makes any. */
  readonly holdId: string | undefined
  /** What it touches: those of its lines and of its operation id. */
  readonly buckets: readonly number[]
  /** Under which ids an earlier version may have remembered it, or what it is about. */
  readonly earlier: readonly string[] | undefined
}

/**
 * With `numbers`, what could not be read as numbers afterwards is refused. `remembered` are those of `earlier` that the
 * database knows: they keep their ids.
 */
export function requestOf(
  given: Operation,
  numbers = false,
  remembered: ReadonlySet<string> = none,
): Request {
  const lines = given.lines.map((line) => markedLine(line, numbers, remembered))
  const { operationId, scope, book } = given
  const newId = operationId === undefined ? undefined : operationUuid(operationId)
  const earlierId =
    operationId === undefined || newId === operationId ? undefined : earlierUuid(operationId)
  const isEarlier = earlierId !== undefined && remembered.has(earlierId)
  const id = isEarlier ? earlierId : newId
  // The text is compared as well, and was stored as it was given then.
  const operation =
    earlierId === undefined || isEarlier
      ? { ...given, lines }
      : { ...given, lines, operationId: newId }
  const accounts = lines.map((line) =>
    line.key === undefined ? undefined : accountId(line.scope ?? line.key, line.book, line.key),
  )
  const home = scope ?? lines[0]?.scope ?? lines[0]?.key
  const owner =
    id === undefined || home === undefined
      ? undefined
      : isOwn(lines[0], home, book)
        ? accounts[0]
        : accountId(home, book, home)
  const makesHold = lines.some((line) => line.kind === kinds.hold)
  return {
    operation,
    id,
    owner,
    accounts,
    holdId:
      makesHold && id !== undefined && owner !== undefined
        ? holdIdOf(owner.bucket, owner.base, id)
        : undefined,
    buckets: bucketsIn(lines, accounts, owner),
    earlier: remembered === none ? earlierOf(earlierId, lines) : undefined,
  }
}

const none: ReadonlySet<string> = new Set()

function earlierOf(id: string | undefined, lines: readonly Line[]): string[] | undefined {
  if (id === undefined && lines.every(({ earlierRef }) => earlierRef === undefined)) {
    return undefined
  }
  return [id, ...lines.map(({ earlierRef }) => earlierRef)].filter((each) => each !== undefined)
}

/** @throws LEDGER_AMOUNT_UNSAFE before anything is sent */
function markedLine(given: Line, numbers: boolean, remembered: ReadonlySet<string>): Line {
  const { earlierRef } = given
  const line =
    earlierRef !== undefined && remembered.has(earlierRef) ? { ...given, ref: earlierRef } : given
  if (numbers && line.amount !== undefined && !Number.isSafeInteger(Number(line.amount))) {
    throw holdfastError('LEDGER_AMOUNT_UNSAFE')
  }
  const isUnscoped = line.scope === undefined && line.key !== undefined
  const marks = (numbers ? flags.numbers : 0) | (isUnscoped ? flags.unscoped : 0)
  return marks === 0 ? line : { ...line, flags: (line.flags ?? 0) | marks }
}

function bucketsIn(
  lines: readonly Line[],
  accounts: readonly (AccountId | undefined)[],
  owner: AccountId | undefined,
): readonly number[] {
  const [first] = accounts
  if (lines.length === 1 && first !== undefined && (owner ?? first).bucket === first.bucket) {
    return [first.bucket]
  }
  // A line without a key is about a hold, whose id begins with its bucket.
  const touched = lines.map(
    (line, at) => accounts[at]?.bucket ?? Number.parseInt(line.ref?.slice(0, 3) ?? '', 16),
  )
  return bucketsOf(owner === undefined ? touched : [...touched, owner.bucket])
}

/** Those of all requests, for one statement. */
export function bucketsOfAll(requests: readonly Request[]): readonly number[] {
  const [only] = requests
  if (requests.length === 1 && only !== undefined) return only.buckets
  const all = new Set<number>()
  for (const { buckets } of requests) for (const bucket of buckets) all.add(bucket)
  return [...all]
}

/** Whether the account of a line is the one that its scope's operation ids are kept under. */
function isOwn(line: Line | undefined, home: string, book: string): boolean {
  return line?.key === home && line.book === book && (line.scope ?? home) === home
}

const plainKinds: ReadonlySet<number> = new Set([
  kinds.credit,
  kinds.debit,
  kinds.hold,
  kinds.opening,
  kinds.return,
])
/** Flags with which the short ways would decide otherwise than `apply`. */
const notPlain = flags.unchecked | flags.sticky | flags.upTo

/** One line of a kind that `apply_one` and `apply_plain` know. */
export interface PlainRequest extends Request {
  readonly id: string
  readonly owner: AccountId
}

export function isPlain(request: Request): request is PlainRequest {
  const { operation, id, owner, accounts } = request
  const [line] = operation.lines
  return (
    line !== undefined &&
    id !== undefined &&
    owner !== undefined &&
    operation.lines.length === 1 &&
    owner.bucket === accounts[0]?.bucket &&
    plainKinds.has(line.kind) &&
    ((line.flags ?? 0) & notPlain) === 0 &&
    line.everyUs === undefined
  )
}

/** More than `apply_new` takes in one line: sums of a whole call have to be exact. */
export const mostNewAmount: number = 2 ** 43

/** The same as `apply_new` takes it; nothing where it does not. */
export function newLineOf({ operation, id, owner, accounts }: PlainRequest): NewLine | undefined {
  const [line] = operation.lines as [Line]
  const [account] = accounts as [AccountId]
  const [amount, allowance] = [Number(line.amount), Number(line.allowance ?? Number.NaN)]
  const isShort = line.note === undefined && line.unit === undefined && line.kind !== kinds.hold
  if (!isShort || !(amount <= mostNewAmount) || !Number.isSafeInteger(allowance)) return undefined
  return {
    account,
    operationId: id,
    idWords: wordsOf(id) as Words,
    kind: line.kind,
    amount,
    allowance,
    owner: owner.base === account.base ? undefined : owner,
    givenId: operation.operationId === id ? undefined : operation.operationId,
  }
}

/** One statement for all requests, in their order. `hasDebit`: `apply_debit` is known to be there. */
export function statementFor(
  calls: LedgerCalls,
  requests: readonly Request[],
  hasDebit = false,
): Statement {
  const [only] = requests
  if (requests.length === 1 && only !== undefined && isPlain(only)) {
    return hasDebit && isDebit(only) ? debitOf(calls, only) : plainOne(calls, only)
  }
  return calls.many(columnsOf(requests), bucketsOfAll(requests))
}

/** The flags of a line that has nothing else about it. */
const shortFlags = flags.numbers | flags.unscoped

/** What `apply_debit` knows. */
function isDebit({ operation, id, owner, accounts }: PlainRequest): boolean {
  const [line] = operation.lines as [Line]
  return (
    line.kind === kinds.debit &&
    line.allowance !== undefined &&
    line.flags === shortFlags &&
    owner === accounts[0] &&
    id === operation.operationId &&
    line.note === undefined &&
    line.unit === undefined
  )
}

function debitOf(calls: LedgerCalls, { operation, id, owner, buckets }: PlainRequest): Statement {
  const [{ amount, allowance, book, key }] = operation.lines as [Line]
  const values = [amount, allowance, book, key].map((value) => value ?? null)
  return calls.debit([String(owner.bucket), owner.base, id, ...values], buckets)
}

function plainOne(calls: LedgerCalls, request: PlainRequest): Statement {
  const { operation, id, owner, accounts } = request
  const [line] = operation.lines as [Line]
  const [account] = accounts as [AccountId]
  return calls.one(
    [
      String(account.bucket),
      account.base,
      owner.base,
      id,
      operation.operationId ?? null,
      String(line.kind),
      line.book,
      line.key ?? null,
      line.scope ?? line.key ?? null,
      line.amount ?? null,
      line.allowance ?? null,
      String(line.flags ?? 0),
      line.note ?? null,
      line.unit ?? null,
      line.zone ?? null,
      line.ttlMs === undefined ? null : String(line.ttlMs),
      request.holdId?.slice(4) ?? null,
    ],
    request.buckets,
  )
}

/** One statement for requests that are all plain; what it leaves out goes to `statementFor`. */
export function plainStatementFor(
  calls: LedgerCalls,
  requests: readonly PlainRequest[],
): Statement {
  const columns = Array.from({ length: columnsOfPlain }, () => new ArrayLiteral())
  const [
    buckets,
    bases,
    owners,
    ids,
    operationIds,
    kindsOf,
    amounts,
    allowances,
    flagsOf,
    notes,
    units,
    zones,
    ttls,
    refs,
  ] = columns as Columns
  for (const { operation, id, owner, accounts, holdId } of requests) {
    const [line] = operation.lines as [Line]
    const [account] = accounts as [AccountId]
    buckets.plain(account.bucket)
    bases.plain(account.base)
    owners.plain(owner.base === account.base ? undefined : owner.base)
    ids.plain(id)
    operationIds.text(operation.operationId === id ? undefined : operation.operationId)
    kindsOf.plain(line.kind)
    amounts.plain(line.amount)
    allowances.plain(line.allowance)
    flagsOf.plain(line.flags ?? 0)
    notes.text(line.note)
    units.text(line.unit)
    zones.text(line.zone)
    ttls.plain(line.ttlMs)
    refs.plain(holdId?.slice(4))
  }
  return calls.plain(arrayColumns(columns), bucketsOfAll(requests))
}

/** The accounts that requests are about, a line each, in the order of `accountsOf`. */
export function lineColumns(requests: readonly Request[]): ArrayColumns {
  const columns = Array.from({ length: 5 }, () => new ArrayLiteral())
  const [buckets, bases, units, zones, refs] = columns as [A, A, A, A, A]
  for (const { operation, accounts } of requests) {
    operation.lines.forEach((line, at) => {
      buckets.plain(accounts[at]?.bucket)
      bases.plain(accounts[at]?.base)
      units.text(line.unit)
      zones.text(line.zone)
      refs.text(endsHold(line) ? line.ref : undefined)
    })
  }
  return arrayColumns(columns)
}

function endsHold({ kind }: Line): boolean {
  return kind === kinds.settle || kind === kinds.release || kind === kinds.extend
}

/** What names the accounts of a request, line by line: the key's own, or the hold. */
export function accountsOf({ operation, accounts }: Request): readonly string[] {
  return operation.lines.map((line, at) => accounts[at]?.base ?? line.ref ?? '')
}

type A = ArrayLiteral
type Columns = [A, A, A, A, A, A, A, A, A, A, A, A, A, A]

/** The columns of `apply`, in the order of its parameters. A column without a value is null. */
function columnsOf(requests: readonly Request[]): ArrayColumns {
  const columns = Array.from({ length: columnsOfMany }, () => new ArrayLiteral())
  for (let op = 0; op < requests.length; op += 1) {
    const request = requests[op] as Request
    const { lines } = request.operation
    for (let at = 0; at < lines.length; at += 1) {
      addLine(columns, op, request, lines[at] as Line, request.accounts[at])
    }
  }
  return arrayColumns(columns)
}

function addLine(
  columns: readonly ArrayLiteral[],
  op: number,
  { operation, id, owner, holdId }: Request,
  line: Line,
  account: AccountId | undefined,
): void {
  let at = 0
  const plain = (value: string | number | undefined): void => {
    columns[at++]?.plain(value)
  }
  const text = (value: string | undefined): void => {
    columns[at++]?.text(value)
  }
  plain(op)
  plain(account?.bucket)
  plain(account?.base)
  plain(owner?.base)
  plain(id)
  text(operation.operationId)
  plain(line.kind)
  text(line.book)
  text(line.key)
  text(line.scope ?? line.key)
  plain(line.amount)
  plain(line.allowance)
  plain(line.flags ?? 0)
  plain(owner?.bucket === account?.bucket ? undefined : owner?.bucket)
  text(line.note)
  text(line.unit)
  text(line.zone)
  plain(line.everyUs)
  plain(line.ttlMs)
  text(line.ref ?? holdId?.slice(4))
  text(line.terms)
}
