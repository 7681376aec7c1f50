import { type Fragment } from '../sql/text.ts'

/** How a text is compared with a column of one kind, or `undefined` if no value of that kind is written like this. */
type Compare = (text: string, type: string) => Fragment | undefined

/** What no row has. */
const none: Fragment = { text: 'NULL', values: [] }

/** A boolean column is a number. */
function booleanAsNumber(text: string): string {
  return text === 'true' ? '1' : text === 'false' ? '0' : text
}

const [leastSigned, mostSigned, mostUnsigned] = [-(2n ** 63n), 2n ** 63n - 1n, 2n ** 64n - 1n]

/** As a whole number: a text would be compared as one with a fraction, which is only 53 bits exact. */
const asInteger: Compare = (given) => {
  const text = booleanAsNumber(given)
  if (!/^[+-]?\d{1,200}$/.test(text)) return undefined
  const number = BigInt(text.replace('+', ''))
  // A cast would make the nearest of it, which is the number of another row.
  if (number < leastSigned || number > mostUnsigned) return none
  const sign = number < 0n ? 'SIGNED' : 'UNSIGNED'
  // In an UPDATE by several columns MySQL takes what is cast for a number with a sign, and fails on one that is larger.
  const value = number > mostSigned ? 'CAST(? AS CHAR)' : '?'
  return { text: `CAST(${value} AS ${sign})`, values: [String(number)] }
}

/** Only with as many digits as the column has: a cast rounds what has more. */
const asDecimal: Compare = (given, type) => {
  const [, sign = '', whole = '', fraction = ''] =
    /^([+-]?)(\d{1,200})(?:\.(\d{1,200}))?$/.exec(booleanAsNumber(given)) ?? []
  if (whole === '') return undefined
  const [, precision = '10', scale = '0'] = /^\w+\((\d+)(?:,(\d+))?\)/.exec(type) ?? []
  const [before, behind] = [whole.replace(/^0+/, ''), fraction.replace(/0+$/, '')]
  if (behind.length > Number(scale) || before.length > Number(precision) - Number(scale))
    return none
  const value = `${sign}${before === '' ? '0' : before}.${behind === '' ? '0' : behind}`
  return { text: `CAST(? AS DECIMAL(${precision}, ${scale}))`, values: [value] }
}

const asFloat: Compare = (given, type) => {
  const text = booleanAsNumber(given)
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,5})?$/i.test(text)) return undefined
  const number = type.startsWith('float') ? inSingle(Number(text)) : Number(text)
  if (!Number.isFinite(number)) return none
  return bound(type.startsWith('float') ? String(number) : text)
}

/**
 * What FLOAT makes of 0.1, in the digits by which the server compares it: 0.10000000149011612. Not a number of one that is
 * neither this nor the shortest that it is written with: the nearest would be that of another row.
 */
function inSingle(number: number): number {
  const single = Math.fround(number)
  if (single === number) return single
  for (let digits = 1; digits <= 9; digits += 1) {
    const short = Number(single.toPrecision(digits))
    if (Math.fround(short) === single) return short === number ? single : Number.NaN
  }
  return Number.NaN
}

function bound(text: string): Fragment {
  return { text: '?', values: [text] }
}

/** As the server writes it, and nothing behind it: it would be passed over. */
function written(form: RegExp): Compare {
  return (text) => (form.test(text) ? bound(text) : undefined)
}

const day = String.raw`\d{4}-\d{2}-\d{2}`
const time = String.raw`\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?`

const kinds: readonly (readonly [type: RegExp, expected: string, compare: Compare])[] = [
  [/^(?:(?:tiny|small|medium|big)?int|bit)\b/, 'a whole number', asInteger],
  [/^decimal\b/, 'a decimal number', asDecimal],
  [/^(?:float|double)\b/, 'a number', asFloat],
  [/^year\b/, 'a year of four digits', written(/^\d{4}$/)],
  [/^date\b/, "a date like '2026-01-31'", written(new RegExp(`^${day}$`))],
  [
    /^(?:datetime|timestamp)\b/,
    "a date and time like '2026-01-31 12:00:00', without a zone",
    written(new RegExp(`^${day}[ T]${time}$`)),
  ],
  [/^time\b/, "a time like '12:00:00'", written(new RegExp(`^-?\\d?${time}$`))],
]

/**
 * A value of a key as the server will compare it with a column of this type. What only begins with a number or a date would
 * be that number or date, and so lock another row.
 */
export function keyValue(text: string, type: string): Fragment | { readonly expected: string } {
  const [, expected = '', compare] = kinds.find(([kind]) => kind.test(type)) ?? []
  if (compare === undefined) return bound(text)
  return compare(text, type) ?? { expected }
}
