import type { Executor, Row, Statement } from '../../../core/driver.ts'
import type { TableName } from '../../../core/table-name.ts'
import { quoteIdentifier, tableText } from './identifier.ts'
import { eq, gt, ne } from './operators.ts'

/** Columns whose type brings operators of its own, as citext does, and the schema that these are in. */
export type OwnOperators = Readonly<Record<string, string>>

/** A table of the caller's whose columns are compared. */
export interface Compared {
  readonly table: TableName
  /** Of all other columns, those of PostgreSQL's are meant; nobody has asked yet if `undefined`. */
  readonly operators?: OwnOperators
}

/** Compares a column by the operator of its type, whatever others there are of that name. */
export function comparing(
  { operators = {} }: Pick<Compared, 'operators'>,
  column: string,
  sign: '=' | '<' | '<=' | '>',
): string {
  const schema = Object.hasOwn(operators, column) ? operators[column] : undefined
  return `OPERATOR(${schema === undefined ? 'pg_catalog' : quoteIdentifier(schema)}.${sign})`
}

/** What the unique index over such a column compares by; of a domain, what its base type does. */
export function readOperators(table: TableName): Statement {
  return {
    text: `
WITH RECURSIVE "#column" AS (
  SELECT attname, atttypid AS type FROM pg_catalog.pg_attribute
  WHERE attrelid ${eq} pg_catalog.to_regclass($1::pg_catalog.text) AND attnum ${gt} 0 AND NOT attisdropped
  UNION ALL
  SELECT "#column".attname, typbasetype FROM "#column" JOIN pg_catalog.pg_type ON pg_type.oid ${eq} "#column".type
  WHERE typbasetype ${ne} 0
), "#own" AS (
  SELECT "#column".attname, nspname
  FROM "#column"
  JOIN pg_catalog.pg_opclass ON opcintype ${eq} "#column".type AND opcdefault
  JOIN pg_catalog.pg_am ON pg_am.oid ${eq} opcmethod AND amname ${eq} 'btree'
  JOIN pg_catalog.pg_amop ON amopfamily ${eq} opcfamily AND amoplefttype ${eq} opcintype
    AND amoprighttype ${eq} opcintype AND amopstrategy ${eq} 3
  JOIN pg_catalog.pg_operator ON pg_operator.oid ${eq} amopopr
  JOIN pg_catalog.pg_namespace ON pg_namespace.oid ${eq} oprnamespace AND nspname ${ne} 'pg_catalog'
)
SELECT EXISTS (SELECT FROM "#column")::pg_catalog.text AS found, coalesce((
  SELECT pg_catalog.jsonb_object_agg("#own".attname, "#own".nspname) FROM "#own"), '{}')::pg_catalog.text AS own,
  pg_catalog.pg_backend_pid()::pg_catalog.text AS pid`,
    values: [tableText(table)],
    name: 'own_operators',
    // With the pid, so that nobody has to ask for it a second time.
    columns: ['found', 'own', 'pid'],
  }
}

/** Nothing if the table is not there. */
function operatorsFrom([row]: readonly Row[]): OwnOperators | undefined {
  if (row?.['found'] !== 'true') return undefined
  return JSON.parse(String(row['own'])) as OwnOperators
}

/** By driver and table. Types of columns hardly ever change; a process that saw the old ones has to be started again. */
const known = new WeakMap<object, Map<string, OwnOperators>>()
const mostTables = 1_000
/** The same object each time: what is made of it is kept by it. */
const completed = new WeakMap<Compared, Compared>()

/** The target with the operators of its columns' types, which are asked for once. */
export async function withOperators<T extends Compared>(
  driver: object,
  on: Executor,
  target: T,
): Promise<T> {
  if (target.operators !== undefined) return target
  const tables = known.get(driver) ?? new Map<string, OwnOperators>()
  known.set(driver, tables)
  const name = tableText(target.table)
  let operators = tables.get(name)
  if (operators === undefined) {
    operators = operatorsFrom(await on.query(readOperators(target.table)))
    if (tables.size >= mostTables) tables.clear()
    if (operators !== undefined) tables.set(name, operators)
  }
  if (operators === undefined || Object.keys(operators).length === 0) return target
  const complete = completed.get(target) ?? { ...target, operators }
  completed.set(target, complete)
  return complete as T
}
