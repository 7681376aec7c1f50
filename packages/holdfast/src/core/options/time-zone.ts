import { holdfastError } from '../errors.ts'

/**
 * The name of a place, which means the same to JavaScript and to every database. A name without a slash may be an
 * abbreviation: PostgreSQL looks for those first, and each server has a list of its own, in which EST has no summer time,
 * IST is Israel and not India, and PST the Philippines where somebody has said so. Offsets are refused as well: PostgreSQL
 * reads the sign of `+02:00` the other way round.
 *
 * @throws OPTION_INVALID
 */
export function assertTimeZone(timeZone: unknown): void {
  if (typeof timeZone === 'string' && isKnown(timeZone)) {
    if (placeOrUniversal.test(timeZone)) return
    if (/^[a-z]/i.test(timeZone)) {
      throw invalid(
        `${timeZone} may mean another zone in the database: name a place, like Asia/Tokyo`,
      )
    }
  }
  throw invalid('timeZone must be a name like America/Santiago')
}

const placeOrUniversal = /^(?:[a-z][^/]*\/.*|utc|gmt)$/i

function isKnown(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone })
    return true
  } catch {
    return false
  }
}

function invalid(subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option: 'timeZone', subject } })
}
