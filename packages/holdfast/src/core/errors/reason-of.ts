import { isHoldfastError } from '../errors.ts'
import { sqlStateOf } from '../sql-state.ts'

/** An error in one word, of which there are few: its Holdfast code, its SQLSTATE, or `error`. */
export function reasonOf(error: unknown): string {
  return isHoldfastError(error) ? error.code : (sqlStateOf(error) ?? 'error')
}
