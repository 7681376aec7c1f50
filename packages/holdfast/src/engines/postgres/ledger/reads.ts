import type { Statement } from '../../../core/driver.ts'
import { quoteIdentifier, quoteLiteral } from '../sql/identifier.ts'
import { parameters, type ParameterType } from '../sql/parameter.ts'
import { eq, plus, times } from '../sql/operators.ts'

/** An account by its names. The bucket is the scope's. */
export interface AccountNames {
  readonly bucket: number
  readonly book: string
  readonly key: string
  readonly scope: string
}

/** Each answers with one JSON text; see the function of the same name in `sql/app`. */
function call(schema: string, name: string, types: readonly ParameterType[]): string {
  return `SELECT ${quoteIdentifier(schema)}.${name}(${parameters(types)}) AS answer`
}

function values({ bucket, book, key, scope }: AccountNames): string[] {
  return [String(bucket), book, key, scope]
}

const account: readonly ParameterType[] = ['int2', 'text', 'text', 'text']

/** `moment` is an ISO 8601 text; without it the balance is read as it is now. */
export function readBalance(
  schema: string,
  names: AccountNames,
  moment: string | undefined,
): Statement {
  return {
    text: call(schema, 'read_balance', [...account, 'timestamptz']),
    values: [...values(names), moment ?? null],
    scopes: [names.bucket],
  }
}

/** The same of now, after what is due was booked, and how much of it is for other features. */
export function dueBalance(
  schema: string,
  names: AccountNames,
  base: string,
  feature: string | null,
): Statement {
  const { bucket, book, key, scope } = names
  return {
    text: call(schema, 'due_balance', ['int2', 'uuid', 'text', 'text', 'text', 'text']),
    values: [String(bucket), base, book, key, scope, feature],
    scopes: [bucket],
  }
}

/** `belowWindow` is in microseconds, or `-infinity` for what has no window. */
export function readHistory(
  schema: string,
  names: AccountNames,
  below: { readonly window: string; readonly sequence: string } | undefined,
  most: number,
): Statement {
  const window = `CASE WHEN $5::pg_catalog.text ${eq} '-infinity' THEN '-infinity' ELSE
    pg_catalog.timestamptz 'epoch' ${plus} ($5::pg_catalog.text::bigint ${times} interval '1 microsecond') END`
  return {
    text: `SELECT ${quoteIdentifier(schema)}.read_history($1::pg_catalog.text::smallint, $2::pg_catalog.text, $3::pg_catalog.text,
  $4::pg_catalog.text, ${window}, $6::pg_catalog.text::bigint, $7::pg_catalog.text::integer) AS answer`,
    values: [...values(names), below?.window ?? null, below?.sequence ?? null, String(most)],
    scopes: [names.bucket],
  }
}

export function readHolds(schema: string, names: AccountNames, most: number): Statement {
  return {
    text: call(schema, 'read_holds', [...account, 'int4']),
    values: [...values(names), String(most)],
    scopes: [names.bucket],
  }
}

/** What `peek` is told about the line that somebody thinks of sending. */
export interface PeekLine {
  readonly bucket: number
  readonly base: string
  readonly amount: string
  readonly allowance: string | undefined
  readonly rolling: boolean
  readonly unit: string | undefined
  readonly zone: string | undefined
  readonly everyUs: string | undefined
}

export function peekAt(schema: string, line: PeekLine): Statement {
  return {
    text: call(schema, 'peek', ['int2', 'uuid', 'int8', 'int8', 'bool', 'text', 'text', 'int8']),
    values: [
      String(line.bucket),
      line.base,
      line.amount,
      line.allowance ?? null,
      String(line.rolling),
      line.unit ?? null,
      line.zone ?? null,
      line.everyUs ?? null,
    ],
    name: 'ledger_peek',
    scopes: [line.bucket],
  }
}

/** Whether this schema has `apply_debit` and we may use it: inside of a transaction that cannot be found out by trying. */
function mayDebit(schema: string): string {
  const [uuid, text] = ['pg_catalog.uuid', 'pg_catalog.text']
  const types = ['smallint', uuid, uuid, 'bigint', 'bigint', text, text].join(', ')
  const name = quoteLiteral(`${quoteIdentifier(schema)}.apply_debit(${types})`)
  return `pg_catalog.has_function_privilege(pg_catalog.to_regprocedure(${name}), 'EXECUTE')::pg_catalog.int4::pg_catalog.text`
}

/** What a book was declared as; see `sql/app/declare_book.sql`. Answers also, as `debits`, whether `apply_debit` is there. */
export function declareBook(
  schema: string,
  book: string,
  declaration: string | null,
  scopes: readonly number[],
): Statement {
  return {
    text: `${call(schema, 'declare_book', ['text', 'text'])}, ${mayDebit(schema)} AS debits`,
    values: [book, declaration],
    scopes,
  }
}

export function readBooks(schema: string): Statement {
  return { text: call(schema, 'read_books', []), values: [] }
}

export function redeclareBook(schema: string, book: string, declaration: string): Statement {
  return {
    text: call(schema, 'redeclare_book', ['text', 'text']),
    values: [book, declaration],
  }
}

export function listKeys(
  schema: string,
  book: string,
  after: string | undefined,
  most: number,
): Statement {
  return {
    text: call(schema, 'list_keys', ['text', 'text', 'int4']),
    values: [book, after ?? null, String(most)],
  }
}

/** What `read_usage` is asked for; moments are ISO 8601 texts. */
export interface UsageQuestion {
  readonly book: string
  readonly from: string
  readonly to: string
  readonly unit: string | undefined
  readonly zone: string
  readonly by: readonly string[]
  readonly key: string | undefined
  readonly scope: string | undefined
  readonly most: number
}

export function readUsage(schema: string, asked: UsageQuestion): Statement {
  const types: readonly ParameterType[] = [
    'text',
    'timestamptz',
    'timestamptz',
    'text',
    'text',
    'bool',
    'bool',
    'bool',
  ]
  return {
    text: call(schema, 'read_usage', [...types, 'text', 'text', 'int4']),
    values: [
      asked.book,
      asked.from,
      asked.to,
      asked.unit ?? null,
      asked.zone,
      ...['key', 'scope', 'feature'].map((name) => String(asked.by.includes(name))),
      asked.key ?? null,
      asked.scope ?? null,
      String(asked.most),
    ],
  }
}

export function currentWindow(
  schema: string,
  bucket: number,
  unit: string,
  zone: string,
): Statement {
  return {
    text: call(schema, 'current_window', ['text', 'text']),
    values: [unit, zone],
    scopes: [bucket],
  }
}

/** Ids that an earlier version may have remembered for an owner, or as grants of these accounts. */
export interface EarlierIds {
  readonly owner: { readonly bucket: number; readonly base: string }
  readonly bases: readonly string[]
  readonly ids: readonly string[]
  readonly buckets: readonly number[]
}

/** Those that it has remembered, separated by commas. */
export function earlierIds(schema: string, { owner, bases, ids, buckets }: EarlierIds): Statement {
  return {
    text: call(schema, 'earlier_ids', ['int2', 'uuid', 'uuid[]', 'uuid[]']),
    values: [String(owner.bucket), owner.base, `{${bases.join(',')}}`, `{${ids.join(',')}}`],
    scopes: buckets,
  }
}
