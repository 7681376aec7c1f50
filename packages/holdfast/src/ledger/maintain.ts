import { type Duration, durationMs } from '../core/duration.ts'
import { holdfastError } from '../core/errors.ts'
import {
  auditSteps,
  dropMonth,
  emptyDefaultPartition,
  extendPartitions,
  forgetOperations,
  forgetWindows,
  upkeepPlan,
} from '../engines/postgres/ledger-upkeep.ts'
import { bucketRanges } from './audit.ts'
import type { Kernel } from './index.ts'
import { jsonAnswer, textAnswer } from './stored-text.ts'

/** Options of `maintain`. Nothing is dropped or forgotten unless it is asked for. */
export interface MaintainOptions {
  /** For how many months to come partitions are made. @defaultValue 12 */
  readonly monthsAhead?: number
  /**
   * Drops movements older than so many whole months before this one, after writing down what they
   * added up to; forgets their operation ids, and calendar windows of that time. At least 1.
   */
  readonly keepMonths?: number
  /**
   * Forgets operation ids older than this, and holds that ended before: used again, such an id is
   * applied again. At least a day; it cannot be longer than `keepMonths`.
   */
  readonly operationHorizon?: Duration
  /** Told what is being done, line by line. */
  readonly onProgress?: (line: string) => void
}

/** What was done. */
export interface Maintained {
  readonly monthsMade: number
  /** Movements that were in the default partition, because their month had none. */
  readonly movementsMoved: number
  readonly operationsForgotten: number
  /** First days of the months whose movements were dropped. */
  readonly monthsDropped: readonly string[]
  readonly windowsForgotten: number
  /** How many months to come have their partition. Below two, somebody forgot to maintain. */
  readonly monthsAhead: number
}

interface Plan {
  readonly boundary: string | null
  readonly forget: string | null
  readonly months: readonly string[]
  readonly ahead: number
}

const leastHorizonMs = 86_400_000

/** Every step is a transaction of its own: what is done stays done, and it can be run again. */
export async function maintainLedger<Tx>(
  kernel: Kernel<Tx>,
  { monthsAhead = 12, keepMonths, operationHorizon, onProgress }: MaintainOptions,
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

  const movementsMoved = await count(emptyDefaultPartition)
  if (movementsMoved > 0) onProgress?.(`${movementsMoved} movements moved to their months`)
  const monthsMade = await count((schema) => extendPartitions(schema, ahead))
  if (monthsMade > 0) onProgress?.(`${monthsMade} months made`)
  const plan = jsonAnswer(
    await kernel.read(undefined, (schema) => upkeepPlan(schema, keep, horizonMs)),
  ) as Plan
  let operationsForgotten = 0
  let windowsForgotten = 0
  const { forget, boundary } = plan
  if (forget !== null) {
    operationsForgotten = await overRanges((schema, first, last) =>
      forgetOperations(schema, forget, first, last),
    )
    onProgress?.(`${operationsForgotten} operation ids forgotten`)
  }
  for (const month of plan.months) {
    const accounts = await count((schema) => dropMonth(schema, month))
    onProgress?.(`${month.slice(0, 7)} dropped; ${accounts} accounts have a checkpoint`)
  }
  if (boundary !== null) {
    windowsForgotten = await overRanges((schema, first, last) =>
      forgetWindows(schema, boundary, first, last),
    )
    onProgress?.(`${windowsForgotten} calendar windows forgotten`)
  }
  return {
    monthsMade,
    movementsMoved,
    operationsForgotten,
    monthsDropped: plan.months,
    windowsForgotten,
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

function invalid(option: string, subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option, subject } })
}
