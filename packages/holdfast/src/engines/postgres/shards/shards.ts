import type { Statement } from '../../../core/driver.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import { quoteIdentifier } from '../sql/identifier.ts'

/** What `here` raises; see `sql/app/here.sql`. */
const refusals: Readonly<Record<string, ShardRefusalReason>> = {
  HF001: 'elsewhere',
  HF002: 'moving',
  HF008: 'unconfirmed',
}

/** Another server has a bucket, it is on its way, or nobody has compared this server with the others yet. */
export type ShardRefusalReason = 'elsewhere' | 'moving' | 'unconfirmed'

/** Why the server would not work on these buckets; nothing if the error is another one. */
export function shardRefusal(error: unknown): ShardRefusalReason | undefined {
  return refusals[sqlStateOf(error) ?? '']
}

/** An array as PostgreSQL reads it. */
function literalOf(buckets: readonly number[]): string {
  return `{${buckets.join(',')}}`
}

/** What may stand behind the list of a SELECT: a call of a function has nothing of it, and needs no wrapping. */
const clause = /\b(?:FROM|WHERE|GROUP|HAVING|WINDOW|UNION|ORDER|LIMIT|FOR|WITH)\b/i

/** By the text that is wrapped: putting it together costs more than sending it. */
const texts = new Map<string, Map<string, string>>()
const mostTexts = 1_000

/**
 * The statement with a check that the server has these buckets. The condition reads nothing of the
 * statement, so PostgreSQL evaluates it once and before anything else; where it does not hold it raises,
 * and nothing was done.
 */
export function checkedStatement(
  schema: string,
  statement: Statement,
  buckets: readonly number[],
): Statement {
  // What is packed has no room for one value more.
  const { name, scopes: _, packed: __, ...rest } = statement
  return {
    ...rest,
    text: checkedText(schema, statement),
    values: [...statement.values, literalOf(buckets)],
    ...(name === undefined ? {} : { name: `${name}_here` }),
  }
}

function checkedText(schema: string, { text, values }: Statement): string {
  const made = texts.get(schema) ?? new Map<string, string>()
  texts.set(schema, made)
  const known = made.get(text)
  if (known !== undefined) return known
  if (made.size >= mostTexts) made.clear()
  const check = `${quoteIdentifier(schema)}.here($${values.length + 1}::pg_catalog.text::pg_catalog.int4[])`
  const checked = clause.test(text)
    ? `SELECT "#asked".* FROM (${text}\n) AS "#asked" WHERE ${check}`
    : `${text} WHERE ${check}`
  made.set(text, checked)
  return checked
}

/** Asks the server whether it has these buckets, and raises if not; fit for the opening of a transaction. */
export function askHere(schema: string, buckets: readonly number[]): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.here($1::pg_catalog.text::pg_catalog.int4[])::pg_catalog.text AS here,
  pg_catalog.pg_backend_pid()::pg_catalog.text AS pid`,
    values: [literalOf(buckets)],
    columns: ['here', 'pid'],
    name: 'shard_here',
  }
}

/** What a server knows about these buckets, about all of them if none are named. */
export function readShards(schema: string, buckets?: readonly number[]): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.read_shards($1::pg_catalog.text::pg_catalog.int4[]) AS answer`,
    values: [buckets === undefined ? null : literalOf(buckets)],
  }
}

/** See `sql/app/confirm_shards.sql`. */
export function confirmShards(
  schema: string,
  others: readonly (readonly [bucket: number, shard: string, version: number])[],
  complete: boolean,
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.confirm_shards($1::pg_catalog.text, $2::pg_catalog.bool)::pg_catalog.text AS answer`,
    values: [JSON.stringify(others), complete],
  }
}

/** See `sql/operator/occupied_buckets.sql`. */
export function occupiedBuckets(schema: string): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.occupied_buckets() AS answer`,
    values: [],
  }
}

/** See `sql/operator/init_shards.sql`. */
export function initShardsOf(
  schema: string,
  cluster: string,
  shard: string,
  owners: readonly string[],
  members: readonly string[],
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.init_shards($1::pg_catalog.text::pg_catalog.uuid, $2::pg_catalog.text,
  ARRAY(SELECT pg_catalog.jsonb_array_elements_text($3::pg_catalog.text::pg_catalog.jsonb)),
  ARRAY(SELECT pg_catalog.jsonb_array_elements_text($4::pg_catalog.text::pg_catalog.jsonb)))::pg_catalog.text AS answer`,
    values: [cluster, shard, JSON.stringify(owners), JSON.stringify(members)],
  }
}
