import { type Duration, durationMs } from '../../core/options/duration.ts'
import { holdfastError } from '../../core/errors.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import {
  auditSteps,
  dropMonth,
  emptyDefaultPartition,
  extendPartitions,
  forgetGrants,
  forgetOperations,
  forgetWindows,
  upkeepPlan,
} from '../../engines/postgres/ledger/upkeep.ts'
import { retrying } from '../../tx/retry.ts'
import { bucketRanges } from './audit.ts'
import { invalid } from '../calendar.ts'
import type { Kernel } from '../kernel.ts'
import { jsonAnswer, textAnswer } from '../stored-text.ts'
import type { KnownOptions } from '../../core/options/known-options.ts'

/** Options of `maintain`. Nothing is dropped or forgotten unless it is asked for. */
export interface MaintainOptions {
  /** For how many months to come partitions are made. @defaultValue 12 */
  readonly monthsAhead?: number
  /**
   * Drops movements older than so many whole months before this one, after writing down what they
   * added up to; forgets their operation ids, and what is not needed any more of that time: calendar windows, idle
   * accounts of rates and rolling windows, grants that are used up. At least 1.
   */
  readonly keepMonths?: number
  /**
   * Forgets operation ids older than this, and holds that ended before: used again, such an id is
   * applied again. At least a day; it cannot be longer than `keepMonths`.
   */
  readonly operationHorizon?: Duration
  /**
   * How long it is tried to lock a table that others read or write. It is locked for a moment at a time, so that nobody
   * waits behind. Then LEDGER_TIMEOUT: what was done by then stays done. @defaultValue '1 min'
   */
  readonly wait?: Duration
  /** Told what is being done, line by line. */
  readonly onProgress?: (line: string) => void
}

export const maintainOptions: KnownOptions<MaintainOptions> = {
  monthsAhead: 'checked',
  keepMonths: 'checked',
  operationHorizon: 'checked',
  wait: 'checked',
  onProgress: 'function',
}

/** What was done. */
export interface Maintained {
  readonly monthsMade: number
  /** Movements that were in the default partition, because their month had none. */
  readonly movementsMoved: number
  readonly operationsForgotten: number
  /** First days of the months whose movements were dropped. */
  readonly monthsDropped: readonly string[]
  /** Who has not read movements yet that would have been dropped: see `ledger.follow` and `ledger.unfollow`. */
  readonly heldBy: string | undefined
  /** Calendar windows that are over; accounts of rates that are full and of rolling windows that are empty again. */
  readonly windowsForgotten: number
  /** Grants that are used up or ended, and to which nothing can come back. */
  readonly grantsForgotten: number
  /** How many months to come have their partition. Below two, somebody forgot to maintain. */
  readonly monthsAhead: number
}

interface Plan {
  readonly boundary: string | null
  readonly forget: string | null
  readonly months: readonly string[]
  readonly held_by: string | null
  readonly ahead: number
}

const leastHorizonMs = 86_400_000
/** A lock was not to be had within a moment. */
const busy = '55P03'

/** Every step is a transaction of its own: what is done stays done, and it can be run again. */
export async function maintainLedger<Tx>(
  kernel: Kernel<Tx>,
  { monthsAhead = 12, keepMonths, operationHorizon, wait = '1 min', onProgress }: MaintainOptions,
): Promise<Maintained> {
  const ahead = monthsOf(monthsAhead, 'monthsAhead', 1)
  const keep = keepMonths === undefined ? undefined : monthsOf(keepMonths, 'keepMonths', 1)
  const horizonMs = operationHorizon === undefined ? undefined : horizonOf(operationHorizon)
  const count = async (ask: Parameters<Kernel<Tx>['read']>[1]): Promise<number> =>
    Number(textAnswer(await kernel.read(undefined, ask)))
  const overRanges = async (
    ask: (schema: string, first: number, last: number) => ReturnType<typeof forgetWindows>,
  ): Promise<number> => {
    const [row] = await kernel.read(undefined, auditSteps)
    let sum = 0
    for (const [first, last] of bucketRanges(Number(row?.['steps']))) {
      sum += await count((schema) => ask(schema, first, last))
    }
    return sum
  }

  const limitMs = durationMs(wait, 'wait')
  /** A moment at a time, until nobody is in the way. */
  const locking = async (ask: Parameters<Kernel<Tx>['read']>[1]): Promise<number> => {
    try {
      return await retrying(async () => await count(ask), {
        policy: { attempts: Infinity, budgetMs: limitMs, baseMs: 200, capMs: 500, on: [busy] },
        patient: { codes: [], forMs: limitMs },
        signal: undefined,
        onRetry({ attempt }) {
          if (attempt === 1) onProgress?.('somebody has the table of movements; trying again')
        },
      })
    } catch (error) {
      if (sqlStateOf(error) !== busy) throw error
      throw holdfastError('LEDGER_TIMEOUT', { cause: error, details: { subject: 'movement' } })
    }
  }
  const movementsMoved = await locking(emptyDefaultPartition)
  if (movementsMoved > 0) onProgress?.(`${movementsMoved} movements moved to their months`)
  const monthsMade = await locking((schema) => extendPartitions(schema, ahead))
  if (monthsMade > 0) onProgress?.(`${monthsMade} months made`)
  const plan = jsonAnswer(
    await kernel.read(undefined, (schema) => upkeepPlan(schema, keep, horizonMs)),
  ) as Plan
  if (plan.held_by !== null) onProgress?.(`months stay: ${plan.held_by} has not read them yet`)
  let operationsForgotten = 0
  let windowsForgotten = 0
  let grantsForgotten = 0
  const { forget, boundary } = plan
  if (forget !== null) {
    operationsForgotten = await overRanges((schema, first, last) =>
      forgetOperations(schema, forget, first, last),
    )
    onProgress?.(`${operationsForgotten} operation ids forgotten`)
  }
  for (const month of plan.months) {
    const accounts = await locking((schema) => dropMonth(schema, month))
    onProgress?.(`${month.slice(0, 7)} dropped; ${accounts} accounts have a checkpoint`)
  }
  if (boundary !== null) {
    windowsForgotten = await overRanges((schema, first, last) =>
      forgetWindows(schema, boundary, first, last),
    )
    onProgress?.(`${windowsForgotten} windows and idle accounts forgotten`)
    grantsForgotten = await overRanges(forgetGrants)
    onProgress?.(`${grantsForgotten} grants forgotten`)
  }
  return {
    monthsMade,
    movementsMoved,
    operationsForgotten,
    monthsDropped: plan.months,
    heldBy: plan.held_by ?? undefined,
    windowsForgotten,
    grantsForgotten,
    monthsAhead: plan.ahead,
  }
}

function horizonOf(horizon: Duration): number {
  const ms = durationMs(horizon, 'operationHorizon')
  if (ms >= leastHorizonMs) return ms
  throw invalid('operationHorizon', 'operationHorizon must be a day at least, beyond any retry')
}

function monthsOf(value: number, option: string, least: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= 1_200) return value
  throw invalid(option, `${option} must be a whole number from ${least} to 1200`)
}
