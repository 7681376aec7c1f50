import type { DeadLayout, FoundDead } from '../../../claims/engine.ts'
import type { Row, Statement } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { utcNow } from '../sql/clock.ts'
import { inLockOrder } from '../sql/lock-order.ts'
import { type Fragment, quoteIdentifier, valuesOf } from '../sql/text.ts'
import { type ClaimTable, columnOf } from './claim-table.ts'
import { all, anyOf, changeRows, fixedColumns, inStatus, keyOf, padding, set } from './claims.ts'

/** Statements about rows that had their last attempt. Nobody works on them, so there is no token to fit. */

function returned(table: ClaimTable, layout: DeadLayout): string {
  const { attempts, error } = layout
  const as = (name: string): string => quoteIdentifier(`#${name}`)
  return [
    table.keyTexts(),
    ...(attempts === undefined ? [] : [`CAST(${columnOf(attempts)} AS CHAR) AS ${as('attempts')}`]),
    ...(error === undefined ? [] : [`${columnOf(error)} AS ${as('error')}`]),
    ...layout.listedBy.map((column, at) => `${table.keyText(column)} AS ${as(`place${at}`)}`),
    table.columns(layout),
  ].join(', ')
}

/** An ENUM is in the order of its list, and compared as a text. */
function ordered(table: ClaimTable, column: string): string {
  return table.typeOf(column).startsWith('enum(') ? table.keyText(column) : columnOf(column)
}

/** The next dead rows behind a place, as `deadFrom` told it. @throws OPTION_INVALID */
export function listDead(
  table: ClaimTable,
  layout: DeadLayout,
  limit: number,
  after: string | undefined,
): Statement {
  const { listedBy } = layout
  const place = after === undefined ? undefined : placeFrom(layout, after)
  const beyond = place === undefined ? { text: '', values: [] } : isBehind(table, layout, place)
  const where = all(inStatus(table, layout, layout.dead), beyond)
  const by = listedBy.map((column) => ordered(table, column)).join(', ')
  const index = table.inOrder({ fixed: fixedColumns(layout), order: listedBy })
  const text = `SELECT ${returned(table, layout)} FROM ${table.text} t${index} WHERE ${where.text} ORDER BY ${by} LIMIT ?`
  return { text, values: [...where.values, String(limit)] }
}

function isBehind(table: ClaimTable, { listedBy }: DeadLayout, place: readonly string[]): Fragment {
  const terms = listedBy.map((_, n) =>
    all(
      ...listedBy.slice(0, n + 1).map((column, m) => {
        const { text, values } = table.keyValue(column, place[m] ?? '')
        return { text: `${ordered(table, column)} ${m < n ? '=' : '>'} ${text}`, values }
      }),
    ),
  )
  return { text: `(${terms.map(({ text }) => `(${text})`).join(' OR ')})`, values: valuesOf(terms) }
}

function placeFrom({ listedBy }: DeadLayout, after: string): readonly string[] {
  const place: unknown = JSON.parse(after)
  const isPlace = (value: unknown): value is string[] =>
    Array.isArray(value) &&
    value.length === listedBy.length &&
    value.every((each) => typeof each === 'string')
  if (isPlace(place)) return place
  const details = { option: 'after', subject: 'after is not the next of a page' }
  throw holdfastError('OPTION_INVALID', { details })
}

/** One dead row by its key. @throws OPTION_INVALID */
export function findDead(table: ClaimTable, layout: DeadLayout, key: readonly string[]): Statement {
  const where = all(table.hasKey(key), inStatus(table, layout, layout.dead))
  const text = `SELECT ${returned(table, layout)} FROM ${table.text} t WHERE ${where.text}`
  return { text, values: where.values }
}

/** Locks those that are dead, in the order in which everybody locks rows. @throws OPTION_INVALID */
export function lockDead(
  table: ClaimTable,
  layout: DeadLayout,
  keys: readonly (readonly string[])[],
): Statement {
  const isDead = inStatus(table, layout, layout.dead)
  const parts = padding(keys.map((key, at) => ({ at, row: table.hasKey(key) })))
    .toSorted((a, b) => inLockOrder(a.row, b.row))
    .map(({ at, row }) => {
      const where = all(row, isDead)
      const text = `(SELECT ? AS \`#at\` FROM ${table.text} t WHERE ${where.text} FOR UPDATE)`
      return { text, values: [String(at), ...where.values] }
    })
  return { text: parts.map(({ text }) => text).join(' UNION ALL '), values: valuesOf(parts) }
}

/** Makes dead rows pending again, with all their attempts before them; they are locked. */
export function retryDead(
  table: ClaimTable,
  layout: DeadLayout,
  keys: readonly (readonly string[])[],
): Statement {
  const { status, pending, attempts, token, leaseUntil, runAt } = layout
  const sets = [
    ...set(status, table.value(status, pending)),
    ...set(token, 'NULL'),
    ...set(leaseUntil, 'NULL'),
    ...set(attempts, '0'),
    // Its own place, so that rows that are retried together keep their order.
    ...(runAt === undefined ? [] : set(runAt, `LEAST(${columnOf(runAt)}, ${utcNow})`)),
  ]
  return changeRows(table, sets, anyOf(keys.map((key) => table.hasKey(key))))
}

export function deadFrom(layout: DeadLayout, rows: readonly Row[]): FoundDead[] {
  return rows.map((found) => {
    const own = Object.entries(found).filter(([name]) => !name.startsWith('#'))
    const { '#attempts': attempts, '#error': error } = found
    const isThere = attempts !== undefined && attempts !== null
    return {
      key: keyOf(layout, found),
      attempts: isThere ? Number(attempts) : undefined,
      error: typeof error === 'string' ? error : undefined,
      place: JSON.stringify(layout.listedBy.map((_, at) => String(found[`#place${at}`]))),
      row: Object.fromEntries(own),
    }
  })
}
