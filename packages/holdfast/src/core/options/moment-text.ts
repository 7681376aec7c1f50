import { holdfastError } from '../errors.ts'

/** A moment as PostgreSQL reads it: beyond these years it would not. @throws OPTION_INVALID */
export function momentText(moment: unknown, option: string): string {
  const year = moment instanceof Date ? moment.getUTCFullYear() : Number.NaN
  if (year >= 1 && year <= 9_999) return (moment as Date).toISOString()
  throw holdfastError('OPTION_INVALID', {
    details: { option, subject: `${option} must be a Date between the years 1 and 9999` },
  })
}
