import { holdfastError } from '../../core/errors.ts'
import { objectGiven } from '../../core/options/given.ts'

/** Of a driver that has none: what is given would be passed over without a word. @throws OPTION_INVALID */
export function assertNoOptions(given: object | undefined, by: string): void {
  const [option] = Object.keys(objectGiven(given, 'options'))
  if (option === undefined) return
  const details = { option, subject: `${by} has no options`, allowed: [] }
  throw holdfastError('OPTION_INVALID', { details })
}
