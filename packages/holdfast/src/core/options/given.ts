import { holdfastError } from '../errors.ts'
import { isStorable } from '../storable.ts'

/** An object, whatever is in it; nothing is an empty one. @throws OPTION_INVALID */
export function objectGiven<O extends object>(given: O | undefined, option: string): O {
  if (given === undefined) return {} as O
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given
  throw notGiven(option, 'an object')
}

/** @throws OPTION_INVALID */
export function assertFunction(given: unknown, option = 'body'): void {
  if (typeof given !== 'function') throw notGiven(option, 'a function')
}

/** Of an option, where it was given. @throws OPTION_INVALID */
export function assertSignal(given: unknown, option = 'signal'): void {
  if (given !== undefined && !(given instanceof AbortSignal))
    throw notGiven(option, 'an AbortSignal')
}

/** Of an option, where it was given. @throws OPTION_INVALID */
export function assertText(given: unknown, option: string): void {
  if (given !== undefined && !isStorable(given)) throw notGiven(option, 'a text without NUL')
}

/** Names of columns and the like, where they were given. @throws OPTION_INVALID */
export function assertTexts(given: unknown, option: string): void {
  if (given === undefined) return
  if (!Array.isArray(given) || !given.every(isStorable))
    throw notGiven(option, 'a list of texts without NUL')
}

export function notGiven(option: string, wanted: string): Error {
  return holdfastError('OPTION_INVALID', {
    details: { option, subject: `${option} must be ${wanted}` },
  })
}
