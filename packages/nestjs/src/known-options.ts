import { UsageError } from 'holdfast/errors'

/** What a value has to be, and how that is said. */
export type Form = readonly [isFine: (value: unknown) => boolean, wanted: string]

/** All options that the module understands, and what is checked of them here; the library checks the rest of its own. */
export type KnownOptions<O> = { readonly [N in keyof Required<O>]: Form }

export const anything: Form = [() => true, 'anything']
export const aBoolean: Form = [(value) => typeof value === 'boolean', 'true or false']
export const aFunction: Form = [(value) => typeof value === 'function', 'a function']
export const aList: Form = [(value) => Array.isArray(value), 'a list']
export const anObject: Form = [isObject, 'an object']

/** @throws OPTION_INVALID */
export function assertOptions<O>(given: unknown, known: KnownOptions<O>): void {
  if (!isObject(given)) throw refused('options', 'options must be an object')
  const forms = known as Readonly<Record<string, Form>>
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(forms, name)) {
      const all = Object.keys(known).join(', ')
      throw refused(name, `${name} is no option here; there are ${all}`)
    }
    const [isFine, wanted] = forms[name] as Form
    if (value !== undefined && !isFine(value)) throw refused(name, `${name} must be ${wanted}`)
  }
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function refused(option: string, subject: string): Error {
  return new UsageError('OPTION_INVALID', { details: { option, subject } })
}
