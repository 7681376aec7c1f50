import { Misuse } from './command.ts'

/** The whole number that a flag was given; undefined without the flag. */
export function numberOf(value: string | boolean | undefined, flag: string): number | undefined {
  if (typeof value !== 'string') return undefined
  if (/^\d{1,6}$/.test(value)) return Number(value)
  throw new Misuse(`--${flag} takes a whole number.`)
}
