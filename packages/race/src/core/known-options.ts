/** A value that an option may have: how it is told, and in words; if it is an object, which options that has. */
export type OptionForm = readonly [
  isOne: (value: unknown) => boolean,
  words: string,
  within?: KnownOptions<object>,
]

/** Every option there is; written with `satisfies`, it cannot fall behind the types. */
export type KnownOptions<O> = { readonly [N in keyof O]-?: OptionForm | KnownOptions<object> }

export const aBoolean: OptionForm = [(value) => typeof value === 'boolean', 'true or false']
export const aFunction: OptionForm = [(value) => typeof value === 'function', 'a function']
export const aText: OptionForm = [(value) => typeof value === 'string', 'a text']
export const anObject: OptionForm = [isObject, 'an object']
export const names: OptionForm = [isListOfTexts, 'a list of names']
export const aNumber: OptionForm = [
  (value) => typeof value === 'number' && value >= 0,
  'a number, 0 or more',
]

export function anObjectOf(within: KnownOptions<object>): OptionForm {
  return [isObject, 'an object', within]
}

export function either(...forms: readonly OptionForm[]): OptionForm {
  const isOne = (value: unknown): boolean => forms.some(([is]) => is(value))
  const words = forms.map(([, one]) => one).join(', or ')
  const within = forms.find(([, , one]) => one !== undefined)?.[2]
  return within === undefined ? [isOne, words] : [isOne, words, within]
}

export const isFalse: OptionForm = [(value) => value === false, 'false']

/** Every word of a type; the compiler sees to it that none is forgotten. */
export function oneOf<W extends string>(words: Readonly<Record<W, true>>): OptionForm {
  const all = Object.keys(words)
  return [
    (value) => typeof value === 'string' && all.includes(value),
    all.map((word) => `'${word}'`).join(' or '),
  ]
}

/** What is misspelt would be passed over without a word. @throws TypeError with the code OPTION_INVALID */
export function assertOptions<O extends object>(
  given: O,
  known: KnownOptions<O>,
  within = '',
): void {
  if (!isObject(given)) throw invalid(`${within === '' ? 'options' : within} must be an object`)
  const forms = known as Readonly<Record<string, OptionForm | KnownOptions<object>>>
  for (const [name, value] of Object.entries(given) as [string, unknown][]) {
    const option = within === '' ? name : `${within}.${name}`
    const form = Object.hasOwn(forms, name) ? forms[name] : undefined
    if (form === undefined) throw unknown(option, name, Object.keys(forms))
    if (value === undefined) continue
    if (isForm(form)) assertForm(value, form, option)
    else assertOptions(value as object, form, option)
  }
}

/** @throws TypeError with the code OPTION_INVALID */
export function assertForm(
  value: unknown,
  [isOne, words, within]: OptionForm,
  option: string,
): void {
  if (!isOne(value)) throw invalid(`${option} must be ${words}`)
  if (within && isObject(value)) assertOptions(value, within, option)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isListOfTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function isForm(form: OptionForm | KnownOptions<object>): form is OptionForm {
  return Array.isArray(form)
}

function unknown(option: string, name: string, allowed: readonly string[]): Error {
  const near = nearest(name, allowed)
  const meant = near === undefined ? `there are ${allowed.join(', ')}` : `did you mean ${near}?`
  return invalid(`${option} is no option here: ${meant}`)
}

/** The one that somebody may have meant: at most a third of its letters are others. */
function nearest(name: string, allowed: readonly string[]): string | undefined {
  const [best] = allowed
    .map((each) => ({ each, away: distance(name.toLowerCase(), each.toLowerCase()) }))
    .filter(({ away }) => away <= Math.max(1, Math.floor(name.length / 3)))
    .toSorted((a, b) => a.away - b.away)
  return best?.each
}

/** How many letters have to be put in, left out or exchanged. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (const [i, letter] of one.split('').entries()) {
    const next = [i + 1]
    for (let j = 1; j <= other.length; j += 1) {
      const same = letter === other[j - 1] ? 0 : 1
      next[j] = Math.min(
        (row[j] as number) + 1,
        (next[j - 1] as number) + 1,
        (row[j - 1] as number) + same,
      )
    }
    row = next
  }
  return row[other.length] as number
}

export function invalid(message: string): Error {
  return Object.assign(new TypeError(message), { code: 'OPTION_INVALID' })
}
