import type { ColumnValue, OverTable, Waiting } from '../../../claims/engine.ts'
import type { ClaimFinding } from '../../../core/errors/error-details.ts'
import { engineHidden, type TableFacts } from '../schema/table-facts.ts'
import { charsetOf, narrowerThan } from '../sql/charset.ts'

/** Longer than any token. */
const tokenLength = 36

/** What the table is, and whether its key columns identify a row. */
export function tableFindings(
  { table, key }: Waiting,
  { isInnodb, isOwn, keys, hidesEngine }: TableFacts,
): ClaimFinding[] {
  const object = `table ${table.table}`
  if (hidesEngine) {
    const what = `cannot be looked at: ${engineHidden}.`
    return [{ code: 'table-type', object, what, fix: 'Change sql_mode of the sessions.' }]
  }
  if (isOwn || !isInnodb) {
    return [
      {
        code: 'table-type',
        object,
        what: 'is a view, a temporary table, or none of InnoDB, so that its rows cannot be locked.',
        fix: 'Name a table with ENGINE=InnoDB.',
      },
    ]
  }
  const wanted = new Set(key)
  const isKey = keys.some((each) => each.length === key.length && each.every((c) => wanted.has(c)))
  if (isKey) return []
  return [
    {
      code: 'key-not-unique',
      object,
      what: `no unique index by which the server searches has just the columns ${key.join(', ')}, by which rows are locked.`,
      fix: 'Name the columns of the primary key as key.',
    },
  ]
}

/** Columns that claims write, and those that the options name beside them. */
export function columnsOf({ layout, perKey }: OverTable): {
  readonly written: readonly string[]
  readonly needed: readonly string[]
} {
  const { maxAttempts, status, token, leaseUntil, attempts, runAt, error, holder, finishedAt } =
    layout
  const isNamed = (column: string | undefined): column is string => column !== undefined
  const claiming = token === undefined ? [] : [token, leaseUntil, attempts, runAt, error, holder]
  const written = [status, finishedAt, ...claiming].filter(isNamed)
  const needed = [
    ...layout.key,
    ...written,
    runAt,
    layout.priority?.column,
    perKey?.column,
    typeof maxAttempts === 'object' ? maxAttempts.column : undefined,
    ...layout.order,
    ...layout.where.map(([column]) => column),
    ...(layout.columns ?? []),
  ].filter(isNamed)
  return { written: [...new Set(written)], needed: [...new Set(needed)] }
}

/** What the columns lack. */
export function columnFindings(
  settings: OverTable,
  { types, isInnodb }: TableFacts,
): ClaimFinding[] {
  if (!isInnodb) return []
  const { layout, perKey } = settings
  const { needed } = columnsOf(settings)
  const object = (column: string): string => `column ${layout.table.table}.${column}`
  const missing = needed.filter((column) => !types.has(column))
  const there = (...columns: readonly (string | undefined)[]): [column: string, type: string][] =>
    [...new Set(columns)].flatMap((column) => {
      const type = column === undefined ? undefined : types.get(column)
      return column === undefined || type === undefined ? [] : [[column, type]]
    })
  const some = (
    columns: readonly [column: string, type: string][],
    isWrong: (type: string) => boolean,
    finding: Pick<ClaimFinding, 'code' | 'what' | 'fix'>,
  ): ClaimFinding[] =>
    columns
      .filter(([, type]) => isWrong(type))
      .map(([column]) => ({ ...finding, object: object(column) }))
  const read = layout.columns === undefined ? [...types.keys()] : []
  return [
    ...missing.map(
      (column): ClaimFinding => ({
        code: 'column-missing',
        object: object(column),
        what: 'is not there.',
        fix: 'Add it, or say under columns what it is called.',
      }),
    ),
    ...some(
      there(...layout.key, perKey?.column, layout.runAt, layout.priority?.column),
      (type) => !type.includes('not null'),
      {
        code: 'column-nullable',
        what: 'may be null, and a row without it would never be claimed.',
        fix: 'Make it NOT NULL.',
      },
    ),
    ...some(
      there(layout.leaseUntil, layout.runAt, layout.finishedAt),
      (type) => !/^(?:datetime|timestamp)\b/.test(type),
      {
        code: 'column-unfit',
        what: 'is no moment.',
        fix: 'Make it TIMESTAMP(6), or DATETIME(6) that is in UTC.',
      },
    ),
    ...some(
      there(layout.token),
      (type) => !/^(?:text|mediumtext|longtext|uuid)\b/.test(type) && !isTextOf(type, tokenLength),
      {
        code: 'column-unfit',
        what: `does not hold a token, a text of ${tokenLength} characters.`,
        fix: 'Make it CHAR(36).',
      },
    ),
    ...some(
      there(layout.status),
      (type) => !statesOf(layout).every((state) => holds(type, state)),
      {
        code: 'column-unfit',
        what: 'does not hold one of the states.',
        fix: 'Make it long enough for all of values, or add what is missing to its ENUM.',
      },
    ),
    ...some(there(layout.runAt), (type) => /^datetime\b/.test(type), {
      code: 'column-type',
      what: 'has no time zone, and Holdfast takes it for UTC: what is written as NOW() elsewhere is another moment.',
      fix: 'Make it TIMESTAMP(6), or write UTC_TIMESTAMP(6) into it.',
    }),
    ...some(
      there(...layout.key, perKey?.column),
      (type) => /^(?:float|double|timestamp|bit|set|json|geometry)\b/.test(type),
      {
        code: 'key-type',
        what: 'is of a type that has no one text for each value, by which no row can be claimed.',
        fix: 'Use columns of a simple type, such as BIGINT, BINARY(16) or VARCHAR.',
      },
    ),
    ...there(...needed, ...read)
      .filter(([column]) => column.startsWith('#'))
      .map(
        ([column]): ClaimFinding => ({
          code: 'column-name',
          object: object(column),
          what: 'begins with #, as names in our statements do.',
          fix: needed.includes(column) ? 'Rename it.' : 'Name the columns to be read with select.',
        }),
      ),
  ]
}

/** Keys are told and looked for as texts: of two that the connection cannot tell apart, one would be claimed for the other. */
export function charsetFindings(
  { table, key }: Waiting,
  { types, charset }: TableFacts,
  charsets: readonly string[],
): ClaimFinding[] {
  return key.flatMap((column) => {
    const type = types.get(column) ?? ''
    if (!/^(?:(?:var)?char|(?:tiny|medium|long)?text|enum|set)\b/.test(type)) return []
    const narrow = narrowerThan(charsetOf(type, charset), charsets)
    if (narrow === undefined) return []
    return [
      {
        code: 'key-type',
        object: `column ${table.table}.${column}`,
        what: `has characters that the connection's character set ${narrow} has not, so that two keys may look alike.`,
        fix: 'Connect with the character set utf8mb4.',
      },
    ]
  })
}

/** What claims write into the status column. */
function statesOf({ token, pending, claimed, done, dead }: OverTable['layout']): ColumnValue[] {
  const written = token === undefined ? [done] : [pending, claimed, done, dead]
  return written.filter((value) => value !== undefined && value !== null) as ColumnValue[]
}

function isTextOf(type: string, length: number): boolean {
  const [, most = '0'] = /^(?:var)?char\((\d+)\)/.exec(type) ?? []
  return Number(most) >= length
}

/** A server that is not strict would write something else, and say nothing. */
function holds(type: string, state: ColumnValue): boolean {
  const text = String(state).toLowerCase()
  if (/^(?:var)?char\b/.test(type)) return isTextOf(type, text.length)
  if (!type.startsWith('enum(')) return true
  return type.startsWith(`enum('${text}'`) || type.includes(`,'${text}'`)
}
