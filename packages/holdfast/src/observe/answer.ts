import type { Driver, Executor, Row, Statement } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { missingSchema } from '../engines/postgres/sql/call-function.ts'
import { look } from './look.ts'

/** What every report needs to know. */
export interface Looking<Tx> {
  readonly driver: Driver<Tx>
  readonly schema: string
  readonly statementTimeoutMs: number
}

/**
 * Asks one question in a look of its own, and reads the JSON that comes back.
 *
 * @throws SCHEMA_MISSING, OBSERVE_TIMEOUT, TX_NESTED
 */
export async function ask<Tx, T>(looking: Looking<Tx>, statement: Statement): Promise<T> {
  return await asking(looking, (executor) => read<T>(executor, statement))
}

/** Asks several questions in one look, about one moment. */
export async function asking<Tx, T>(
  { driver, statementTimeoutMs }: Looking<Tx>,
  body: (executor: Executor) => Promise<T>,
): Promise<T> {
  try {
    return await look(driver, statementTimeoutMs, body, { byIndex: true, oneSnapshot: true })
  } catch (error) {
    throw missingSchema(error) ?? error
  }
}

/** The JSON of the one column `answer`. */
export async function read<T>(executor: Executor, statement: Statement): Promise<T> {
  return jsonOf<T>(await executor.query(statement))
}

function jsonOf<T>([row]: readonly Row[]): T {
  return JSON.parse(String(row?.['answer'])) as T
}

/** The same without what is null: JSON has no `undefined`, and our data has no null. */
export function withoutNulls<T extends object>(stored: T): T {
  return Object.fromEntries(Object.entries(stored).filter(([, value]) => value !== null)) as T
}

/** @throws OPTION_INVALID */
export function limitOf(value: number, option: string, most = 1_000): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return value
  throw holdfastError('OPTION_INVALID', {
    details: { option, subject: `${option} must be a whole number from 1 to ${most}` },
  })
}

/** A length of time for people, in the largest unit that leaves a number above one. */
export function lengthText(ms: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ] as const
  const [unit, size] = units.find(([, each]) => ms >= each) ?? (['ms', 1] as const)
  return `${Math.floor(ms / size)} ${unit}`
}
