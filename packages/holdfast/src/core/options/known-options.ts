import { holdfastError } from '../errors.ts'
import {
  assertFunction,
  assertSignal,
  assertText,
  assertTexts,
  notGiven,
  objectGiven,
} from './given.ts'

/**
 * What is checked of an option here, where it was given. `checked` leaves it to whoever reads it and knows more than its
 * type; a list has all the words that are allowed; options of options have a table of their own.
 */
export type OptionForm =
  | 'checked'
  | 'boolean'
  | 'function'
  | 'list'
  | 'number'
  | 'object'
  | 'signal'
  | 'string'
  | 'text'
  | 'texts'
  | readonly string[]
  | { readonly [name: string]: OptionForm }

/** A table of all options that a call understands. Written with `satisfies`, it cannot fall behind the types. */
export type KnownOptions<O> = { readonly [N in NamesOf<O>]: OptionForm }

/** Also those that only some of several kinds of options have. */
type NamesOf<O> = O extends unknown ? keyof O : never

/**
 * The options of a call; nothing is none. What is misspelt would be passed over without a word, and so would a number
 * or a text in the place of options.
 *
 * @throws OPTION_INVALID
 */
export function optionsGiven<O extends object>(
  given: O | undefined,
  known: KnownOptions<NoInfer<O>>,
  within = '',
): O {
  const options = objectGiven(given, within === '' ? 'options' : within)
  const forms: Readonly<Record<string, OptionForm>> = known
  // No list of names is made: this is on the way of every guard.
  for (const name in options) {
    const form = Object.hasOwn(known, name) ? forms[name] : undefined
    if (form === undefined) {
      throw isClient(options) ? clientFor(within) : unknownOption(name, known, within)
    }
    if (form === 'checked') continue
    const value: unknown = options[name]
    if (value !== undefined) assertForm(value, form, within === '' ? name : `${within}.${name}`)
  }
  return options
}

/** Methods by which a client or a transaction is known, of any that we have a driver for. */
const verbs = ['query', 'execute', 'executeQuery', '$queryRawUnsafe', 'rollback'] as const

/** Also of a client whose properties cannot be listed. @throws OPTION_INVALID */
export function assertNoClient(given: unknown): void {
  if (typeof given !== 'object' || given === null) return
  if (Object.getPrototypeOf(given) !== Object.prototype && isClient(given)) throw clientFor('')
}

function isClient(given: object): boolean {
  return verbs.some((verb) => typeof (given as Record<string, unknown>)[verb] === 'function')
}

function clientFor(within: string): Error {
  const option = within === '' ? 'options' : within
  return holdfastError('OPTION_INVALID', {
    details: {
      option,
      subject: `${option} is a client or a transaction; where a call takes one, it comes first: consume(tx, …)`,
    },
  })
}

function assertForm(value: unknown, form: OptionForm, option: string): void {
  switch (form) {
    case 'checked':
      return
    case 'boolean':
      if (typeof value !== 'boolean') throw notGiven(option, 'true or false')
      return
    case 'function':
      assertFunction(value, option)
      return
    case 'list':
      if (!Array.isArray(value)) throw notGiven(option, 'a list')
      return
    case 'number':
      if (!Number.isFinite(value)) throw notGiven(option, 'a number')
      return
    case 'object':
      objectGiven(value as object, option)
      return
    case 'signal':
      assertSignal(value, option)
      return
    case 'string':
      if (typeof value !== 'string') throw notGiven(option, 'a text')
      return
    case 'text':
      assertText(value, option)
      return
    case 'texts':
      assertTexts(value, option)
      return
    default:
      if (!isWords(form)) optionsGiven(value as object, form as KnownOptions<object>, option)
      else if (!form.includes(value as string))
        throw notGiven(option, form.map((word) => `'${word}'`).join(' or '))
  }
}

function isWords(form: OptionForm): form is readonly string[] {
  return Array.isArray(form)
}

/** Two ways to say the same, or two that exclude each other. @throws OPTION_INVALID */
export function assertOneOf(options: object, ...names: readonly string[]): void {
  const given = names.filter((name) => (options as Record<string, unknown>)[name] !== undefined)
  if (given.length < 2) return
  const [first, second] = given
  throw holdfastError('OPTION_INVALID', {
    details: { option: second as string, subject: `${first} and ${second} exclude each other` },
  })
}

function unknownOption(name: string, known: object, within: string): Error {
  const allowed = Object.keys(known)
  const near = nearest(name, allowed)
  const place = within === '' ? '' : `${within}.`
  // A name that looks like none may be a value that got here by mistake.
  const shown = /^[a-z_$][\w$]{0,40}$/i.test(name) ? `${place}${name} is` : 'there is'
  const meant = near === undefined ? '' : `: did you mean ${place}${near}?`
  const subject = `${shown} no option here${meant || `; there are ${allowed.join(', ')}`}`
  return holdfastError('OPTION_INVALID', {
    details: { option: place + name, subject, allowed, ...(near && { didYouMean: near }) },
  })
}

/** The one that somebody may have meant. */
export function nearest(name: string, allowed: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(name.length / 3))
  const [best] = allowed
    .map((each) => ({ each, away: distance(name.toLowerCase(), each.toLowerCase()) }))
    .filter(({ away }) => away <= most)
    .toSorted((a, b) => a.away - b.away)
  return best?.each
}

/** How many letters have to be put in, left out, exchanged or swapped. */
function distance(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= one.length; i += 1) {
    const [row, before, earlier] = [[i], rows[i - 1] as number[], rows[i - 2]]
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1]
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      row[j] = Math.min(
        (before[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (before[j - 1] as number) + (same ? 0 : 1),
        swapped ? ((earlier as number[])[j - 2] as number) + 1 : Infinity,
      )
    }
    rows.push(row)
  }
  return rows[one.length]?.[other.length] as number
}
