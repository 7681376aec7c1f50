import type { Driver } from '../../core/driver.ts'
import { assertFunction, assertSignal } from '../../core/options/given.ts'
import { auditRange, auditSteps, readOnly } from '../../engines/postgres/ledger/upkeep.ts'
import { runTransaction } from '../../tx/run.ts'
import { jsonAnswer, type StoredWindow, type WindowBounds, windowBounds } from '../stored-text.ts'
import type { KnownOptions } from '../../core/options/known-options.ts'
import { countOf } from '../calendar.ts'

/** What an audit looks at; docs/audit-and-retention.md says what each means. */
export type AuditCheck =
  | 'gap'
  | 'chain'
  | 'time'
  | 'bound'
  | 'projection'
  | 'held'
  | 'due'
  | 'balance-missing'
  | 'account-missing'
  | 'account-name'
  | 'hold-missing'
  | 'hold-orphan'
  | 'hold-twice'
  | 'hold-state'
  | 'movement-missing'
  | 'operation-missing'
  | 'operation-differs'
  | 'grants'

/** Something that does not add up. */
export interface AuditProblem {
  readonly check: AuditCheck
  /** Id of the account in the tables. */
  readonly account: string
  /** Undefined if the account's names are lost. */
  readonly book: string | undefined
  readonly key: string | undefined
  readonly scope: string | undefined
  readonly window: WindowBounds | undefined
  /** The first movement that is wrong, or the last that is right. */
  readonly sequence: string | undefined
  readonly holdId: string | undefined
  readonly operationId: string | undefined
  /** Of grants: what does not add up. */
  readonly what: string | undefined
}

/** How far an audit is. */
export interface AuditProgress {
  /** Buckets that are done, of 4096. */
  readonly done: number
  readonly of: number
  readonly accounts: number
  readonly movements: number
  readonly found: number
}

/** Options of `audit`. */
export interface AuditOptions {
  readonly onProgress?: (progress: AuditProgress) => void
  /** Cancels the running statement and ends the audit with its reason. */
  readonly signal?: AbortSignal
  /** How many problems are listed, 1 to 1000; all are counted. @defaultValue 100 */
  readonly list?: number
}

export const auditOptions: KnownOptions<AuditOptions> = {
  onProgress: 'function',
  signal: 'signal',
  list: 'checked',
}

/** What an audit found. */
export interface Audit {
  /** The moment that was audited: everything committed before it. */
  readonly snapshotAt: Date
  readonly accounts: number
  readonly movements: number
  /** How many problems there are; zero if all is well. */
  readonly found: number
  /** The first of them. */
  readonly problems: readonly AuditProblem[]
}

interface StoredProblem extends StoredWindow {
  readonly check: AuditCheck
  readonly account: string
  readonly seq: string | null
  readonly hold: string | null
  readonly operation: string | null
  readonly what: string | null
  readonly book: string | null
  readonly key: string | null
  readonly scope: string | null
}

interface StoredRange {
  readonly accounts: string
  readonly movements: string
  readonly found: string
  readonly problems: readonly StoredProblem[]
}

const buckets = 4096
const longestMs = 7 * 86_400_000

/** Ranges of buckets, first and last, that cover them all. */
export function bucketRanges(steps: number): (readonly [first: number, last: number])[] {
  const size = Math.ceil(buckets / Math.min(Math.max(steps, 1), buckets))
  return Array.from({ length: Math.ceil(buckets / size) }, (_, at) => [
    at * size,
    Math.min((at + 1) * size, buckets) - 1,
  ])
}

/** One snapshot, looked at range by range: what is kept in memory does not grow with the ledger. */
export async function auditLedger<Tx>(
  driver: Driver<Tx>,
  schema: string,
  { onProgress, signal, list = 100 }: AuditOptions,
): Promise<Audit> {
  const listed = countOf(list, 'list')
  if (onProgress !== undefined) assertFunction(onProgress, 'onProgress')
  assertSignal(signal)
  return await runTransaction(
    driver,
    async (transaction, attempt) => {
      await transaction.command(readOnly)
      const [row] = await transaction.query(auditSteps(schema))
      const problems: AuditProblem[] = []
      const sums = { accounts: 0, movements: 0, found: 0 }
      for (const [first, last] of bucketRanges(Number(row?.['steps']))) {
        attempt.signal?.throwIfAborted()
        const most = listed - problems.length
        const rows = await transaction.query(auditRange(schema, first, last, most))
        const range = jsonAnswer(rows) as StoredRange
        sums.accounts += Number(range.accounts)
        sums.movements += Number(range.movements)
        sums.found += Number(range.found)
        problems.push(...range.problems.map(problemOf))
        onProgress?.({ done: last + 1, of: buckets, ...sums })
      }
      return { snapshotAt: new Date(Number(row?.['moment'])), ...sums, problems }
    },
    {
      isolation: 'repeatable read',
      retry: false,
      // For clients that would give a transaction up after seconds.
      deadlineMs: longestMs,
      ...(signal === undefined ? {} : { signal }),
    },
    undefined,
    'ledger',
  )
}

function problemOf(stored: StoredProblem): AuditProblem {
  return {
    check: stored.check,
    account: stored.account,
    book: stored.book ?? undefined,
    key: stored.key ?? undefined,
    scope: stored.scope ?? undefined,
    window: windowBounds(stored),
    sequence: stored.seq ?? undefined,
    holdId: stored.hold ?? undefined,
    operationId: stored.operation ?? undefined,
    what: stored.what ?? undefined,
  }
}
