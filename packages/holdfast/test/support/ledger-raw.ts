import type pg from 'pg'
import { accountId, holdIdOf, operationUuid } from '../../src/ledger/account-id.ts'
import { fresh } from './ledger-fixture.ts'

/** A line of `apply()` as somebody may send it who does not use the library. */
export interface RawLine {
  op: number | null
  bucket: number | null
  base: string | null
  owner: string | null
  id: string | null
  operationId: string | null
  kind: number | null
  book: string | null
  key: string | null
  scope: string | null
  amount: string | null
  allowance: string | null
  flags: number | null
  homeBucket: number | null
  note: string | null
  unit: string | null
  zone: string | null
  everyUs: string | null
  ttlMs: string | null
  ref: string | null
  terms: string | null
}

/** Parameters of `apply`, in their order. */
export const columns: readonly (readonly [keyof RawLine, type: string])[] = [
  ['op', 'integer'],
  ['bucket', 'smallint'],
  ['base', 'uuid'],
  ['owner', 'uuid'],
  ['id', 'uuid'],
  ['operationId', 'text'],
  ['kind', 'smallint'],
  ['book', 'text'],
  ['key', 'text'],
  ['scope', 'text'],
  ['amount', 'bigint'],
  ['allowance', 'bigint'],
  ['flags', 'integer'],
  ['homeBucket', 'smallint'],
  ['note', 'text'],
  ['unit', 'text'],
  ['zone', 'text'],
  ['everyUs', 'bigint'],
  ['ttlMs', 'bigint'],
  ['ref', 'text'],
  ['terms', 'text'],
]

/** An honest line; spread it and change what is to be wrong. */
export function honestLine(scope: string, key: string, operationId: string): RawLine {
  const book = 'raw'
  const { bucket, base } = accountId(scope, book, key)
  const owner = accountId(scope, book, scope).base
  return {
    op: 0,
    bucket,
    base,
    owner,
    id: operationUuid(operationId),
    operationId,
    kind: 1,
    book,
    key,
    scope,
    amount: '5',
    allowance: '0',
    flags: 0,
    homeBucket: null,
    note: null,
    unit: null,
    zone: null,
    everyUs: null,
    ttlMs: null,
    ref: null,
    terms: null,
  }
}

/** The same as a hold of an hour. */
function honestHold(scope: string, key: string, operationId: string): RawLine {
  const line = honestLine(scope, key, operationId)
  const holdId = holdIdOf(line.bucket as number, line.owner as string, line.id as string)
  return { ...line, kind: 3, ttlMs: '3600000', ref: holdId.slice(4) }
}

/** Settles, releases or extends it. */
export function endingOf(hold: RawLine, kind: 4 | 5 | 6): RawLine {
  const { bucket, ref, flags } = hold
  const nothing = Object.fromEntries(
    columns.map(([column]) => [column, null]),
  ) as unknown as RawLine
  const prefix = (bucket as number).toString(16).padStart(3, '0')
  const ttlMs = kind === 6 ? '3600000' : null
  return { ...nothing, op: 0, kind, flags, ttlMs, ref: `${prefix}-${ref}` }
}

export type Columns = { [column in keyof RawLine]: readonly RawLine[column][] | null }

export function columnsOf(lines: readonly RawLine[]): Columns {
  return Object.fromEntries(
    columns.map(([column]) => [column, lines.map((line) => line[column])]),
  ) as unknown as Columns
}

/** Calls `apply()`: the statuses that it answers, by line. */
export async function callApply(
  client: pg.ClientBase | pg.Pool,
  given: Columns,
  schema = 'holdfast',
): Promise<number[]> {
  return (await answersOf(client, given, schema)).map(([, status]) => Number(status))
}

/** Calls `apply()`: all that it answers, by line. */
export async function answersOf(
  client: pg.ClientBase | pg.Pool,
  given: Columns,
  schema = 'holdfast',
): Promise<string[][]> {
  const list = columns.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')
  const { rows } = await (client as pg.Pool).query<{ answer: string | null }>(
    `SELECT ${schema}.apply(${list}) AS answer`,
    columns.map(([column]) => given[column]),
  )
  return (rows[0]?.answer ?? '').split('\n').map((line) => line.split(','))
}

/** Calls `apply_plain()` with what it takes of the lines: how many it did. */
export async function callApplyPlain(
  client: pg.ClientBase | pg.Pool,
  lines: readonly RawLine[],
  schema = 'holdfast',
): Promise<number> {
  const left = ['op', 'book', 'key', 'scope', 'homeBucket', 'everyUs', 'terms']
  const taken = columns.filter(([column]) => !left.includes(column))
  const { rows } = await (client as pg.Pool).query<{ answer: string }>(
    `SELECT ${schema}.apply_plain(${taken.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')}) AS answer`,
    taken.map(([column]) => lines.map((line) => line[column])),
  )
  return (rows[0]?.answer ?? '').split('\n').filter((line) => line !== '').length
}

/** Calls `apply_one()` with what it takes of a line: the status it answers. */
export async function callApplyOne(
  client: pg.ClientBase | pg.Pool,
  line: RawLine,
): Promise<number> {
  const taken = columns.filter(
    ([column]) => !['op', 'homeBucket', 'everyUs', 'terms'].includes(column),
  )
  const { rows } = await (client as pg.Pool).query<{ answer: string }>(
    `SELECT holdfast.apply_one(${taken.map(([, type], at) => `$${at + 1}::${type}`).join(', ')}) AS answer`,
    taken.map(([column]) => line[column]),
  )
  return Number(rows[0]?.answer.split(',')[1])
}

/** An account with 20 on it, 5 of them held, and a walled one with 3. */
export interface Victims {
  readonly scope: string
  readonly hold: RawLine
  readonly debit: RawLine
  line(change?: Partial<RawLine>): RawLine
  walled(change?: Partial<RawLine>): RawLine
}

export async function victims(app: pg.Pool): Promise<Victims> {
  const scope = fresh()
  const debit = { ...honestLine(scope, 'rich', fresh()), kind: 2, amount: '10' }
  const made: Victims = {
    scope,
    hold: honestHold(scope, 'rich', fresh()),
    debit,
    line: (change) => ({ ...honestLine(scope, 'rich', fresh()), ...change }),
    walled: (change) => ({ ...honestLine(scope, 'walled', fresh()), flags: 2, ...change }),
  }
  const lines = [made.line({ amount: '30' }), debit, made.hold, made.walled({ amount: '3' })]
  const numbered = lines.map((line, op) => ({ ...line, op }))
  const statuses = await callApply(app, columnsOf(numbered))
  if (statuses.some((status) => status !== 0)) throw new Error('the honest lines were refused')
  return made
}
