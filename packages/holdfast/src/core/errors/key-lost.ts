import { holdfastError } from '../errors.ts'

/** A row was changed, and its key does not find it any more. */
export function keyLost(table: string): Error {
  const why = 'the row was changed and is not found by its key any more, so roll back'
  return holdfastError('ROWS_KEY_INVALID', { details: { subject: `${table}: ${why}` } })
}
