import type { Row, Statement } from '../../core/driver.ts'

/**
 * What PostgreSQL says about the objects of a schema, in words that do not depend on its name or
 * on settings. Partitions are left out: they come and go with the months.
 */

/** What an object is. */
export type ObjectKind =
  | 'table'
  | 'view'
  | 'sequence'
  | 'type'
  | 'column'
  | 'constraint'
  | 'index'
  | 'function'
  | 'trigger'
  | 'rule'

/** An object and everything about it that is compared. */
export interface CatalogueObject {
  readonly kind: ObjectKind
  /** The table or view it belongs to, if it does. */
  readonly of: string
  /** Of a function with the types of its arguments. */
  readonly name: string
  readonly facts: Readonly<Record<string, string>>
}

/**
 * Settings that PostgreSQL's descriptions depend on, for this transaction. With our schema in the
 * search_path its name appears in none of them.
 */
export function fixDescriptions(schema: string): Statement {
  const set = (name: string, value: string): string =>
    `pg_catalog.set_config('${name}', ${value}, true)`
  return {
    text: `SELECT ${[
      set('search_path', "pg_catalog.quote_ident($1::text) || ', pg_temp'"),
      set('quote_all_identifiers', "'off'"),
      set('timezone', "'UTC'"),
      set('datestyle', "'ISO, MDY'"),
      set('intervalstyle', "'postgres'"),
    ].join(" || ' ' || ")} AS "set"`,
    values: [schema],
  }
}

/** The major version of the server. */
export const serverMajor: Statement = {
  text: "SELECT (pg_catalog.current_setting('server_version_num')::int4 / 10000)::text AS major",
  values: [],
}

const yes = (condition: string): string => `CASE WHEN ${condition} THEN 'yes' END`
/** md5 does not exist on servers that follow FIPS. */
const digest = (text: string): string =>
  `pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(${text}, 'UTF8')), 'hex')`

const objects = `
WITH space AS (
  SELECT oid, pg_catalog.quote_ident(nspname) AS plain,
         '"' || pg_catalog.replace(nspname, '"', '""') || '"' AS quoted
  FROM pg_catalog.pg_namespace WHERE nspname = $1::text::name
), relation AS (
  SELECT class.* FROM pg_catalog.pg_class AS class JOIN space ON class.relnamespace = space.oid
  WHERE NOT class.relispartition
), month AS (
  -- A month that was detached, to be archived.
  SELECT relation.oid FROM relation JOIN relation AS parent
    ON parent.relkind = 'p' AND relation.relkind = 'r'
    AND pg_catalog.starts_with(relation.relname, parent.relname)
    AND pg_catalog.substr(relation.relname, pg_catalog.length(parent.relname) + 1) ~ '^_?p?\\d{4}_?\\d{2}$'
), held AS (
  SELECT * FROM relation WHERE relkind <> 'i' AND relkind <> 'I' AND oid NOT IN (SELECT oid FROM month)
)
SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'view' WHEN 'S' THEN 'sequence'
         WHEN 'c' THEN 'type' ELSE 'table' END AS kind,
       '' AS "of", relname::text AS name,
       pg_catalog.jsonb_build_object(
         'partitioned', pg_catalog.pg_get_partkeydef(oid),
         'unlogged', ${yes("relpersistence <> 'p'")},
         'rowSecurity', ${yes('relrowsecurity OR relforcerowsecurity')},
         'materialized', ${yes("relkind = 'm'")},
         'foreign', ${yes("relkind = 'f'")},
         'options', CASE WHEN relkind = 'v' THEN pg_catalog.array_to_string(reloptions, ', ') END,
         'columns', CASE WHEN relkind IN ('v', 'm', 'c') THEN (
           SELECT pg_catalog.string_agg(attname || ' ' || pg_catalog.format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
           FROM pg_catalog.pg_attribute WHERE attrelid = held.oid AND attnum > 0 AND NOT attisdropped) END,
         'definition', CASE WHEN relkind IN ('v', 'm') THEN ${digest('pg_catalog.pg_get_viewdef(oid)')} END
       ) AS facts
FROM held
UNION ALL
SELECT 'column', held.relname, attname,
       pg_catalog.jsonb_build_object(
         'type', pg_catalog.format_type(atttypid, atttypmod),
         'notNull', ${yes('attnotnull')},
         'default', CASE WHEN attgenerated = '' THEN pg_catalog.pg_get_expr(adbin, adrelid) END,
         'generated', CASE WHEN attgenerated <> '' THEN pg_catalog.pg_get_expr(adbin, adrelid) END,
         'identity', nullif(attidentity::text, ''),
         'collation', (SELECT collname FROM pg_catalog.pg_collation
                       WHERE oid = attcollation AND collname <> 'default')
       )
FROM held
JOIN pg_catalog.pg_attribute ON attrelid = held.oid AND attnum > 0 AND NOT attisdropped
LEFT JOIN pg_catalog.pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relkind IN ('r', 'p', 'f')
UNION ALL
-- NOT NULL is a constraint of its own only since version 18; the columns tell.
SELECT 'constraint', held.relname, conname,
       pg_catalog.jsonb_build_object(
         'definition', pg_catalog.pg_get_constraintdef(pg_constraint.oid),
         'invalid', ${yes('NOT coalesce(indisvalid AND indisready, true)')}
       )
FROM held
JOIN pg_catalog.pg_constraint ON conrelid = held.oid AND contype IN ('c', 'f', 'p', 'u', 'x') AND conparentid = 0
LEFT JOIN pg_catalog.pg_index ON indexrelid = conindid AND indrelid = conrelid
UNION ALL
SELECT 'index', held.relname, class.relname,
       pg_catalog.jsonb_build_object(
         'unique', ${yes('indisunique')},
         'definition', pg_catalog.substring(pg_catalog.pg_get_indexdef(indexrelid), ' (USING .*)'),
         'invalid', ${yes('NOT (indisvalid AND indisready)')}
       )
FROM held
JOIN pg_catalog.pg_index ON indrelid = held.oid
JOIN pg_catalog.pg_class AS class ON class.oid = indexrelid
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
UNION ALL
SELECT 'function', '', proname || '(' || pg_catalog.oidvectortypes(proargtypes) || ')',
       pg_catalog.jsonb_build_object(
         'arguments', pg_catalog.pg_get_function_arguments(pg_proc.oid),
         'result', pg_catalog.pg_get_function_result(pg_proc.oid),
         'language', (SELECT lanname FROM pg_catalog.pg_language WHERE oid = prolang),
         'kind', nullif(prokind::text, 'f'),
         'volatility', provolatile::text,
         'strict', ${yes('proisstrict')},
         'parallel', proparallel::text,
         'leakproof', ${yes('proleakproof')},
         'securityDefiner', ${yes('prosecdef')},
         'searchPath', (SELECT CASE WHEN path IN (plain || ', pg_temp', quoted || ', pg_temp') THEN ':"schema", pg_temp' ELSE path END
           FROM (SELECT pg_catalog.substr(setting, 13) AS path FROM pg_catalog.unnest(proconfig) AS setting
                 WHERE setting LIKE 'search\\_path=%') AS pinned),
         'settings', (SELECT pg_catalog.string_agg(setting, ', ' ORDER BY setting COLLATE "C")
           FROM pg_catalog.unnest(proconfig) AS setting WHERE setting NOT LIKE 'search\\_path=%'),
         'body', ${digest(`pg_catalog.replace(prosrc, quoted, ':"schema"')`)}
       )
FROM space JOIN pg_catalog.pg_proc ON pronamespace = space.oid
UNION ALL
-- A partition has copies of the triggers, which only matter if somebody turned one off.
SELECT 'trigger', class.relname, tgname,
       pg_catalog.jsonb_build_object(
         'definition', CASE WHEN tgparentid = 0 THEN pg_catalog.pg_get_triggerdef(pg_trigger.oid, true) END,
         'copy', ${yes('tgparentid <> 0')},
         'disabled', ${yes("tgenabled <> 'O'")}
       )
FROM space JOIN pg_catalog.pg_class AS class ON relnamespace = space.oid
JOIN pg_catalog.pg_trigger ON tgrelid = class.oid AND NOT tgisinternal
WHERE (tgparentid = 0 AND NOT relispartition) OR (tgparentid <> 0 AND tgenabled <> 'O')
UNION ALL
SELECT 'rule', held.relname, rulename, pg_catalog.jsonb_build_object('definition', pg_catalog.pg_get_ruledef(pg_rewrite.oid, true))
FROM held JOIN pg_catalog.pg_rewrite ON ev_class = held.oid AND rulename <> '_RETURN'
UNION ALL
SELECT 'type', '', typname,
       pg_catalog.jsonb_build_object(
         'labels', (SELECT pg_catalog.string_agg(enumlabel, ', ' ORDER BY enumsortorder)
                    FROM pg_catalog.pg_enum WHERE enumtypid = pg_type.oid),
         'base', CASE WHEN typtype = 'd' THEN pg_catalog.format_type(typbasetype, typtypmod) END,
         'checks', (SELECT pg_catalog.string_agg(pg_catalog.pg_get_constraintdef(oid), ', ' ORDER BY conname)
                    FROM pg_catalog.pg_constraint WHERE contypid = pg_type.oid AND contype = 'c')
       )
FROM space JOIN pg_catalog.pg_type ON typnamespace = space.oid AND typtype IN ('d', 'e')`

/** Everything in the schema; `fixDescriptions` has to come before it, in the same transaction. */
export function readObjects(schema: string): Statement {
  return {
    text: `SELECT kind, "of", name, pg_catalog.jsonb_strip_nulls(facts)::text AS facts FROM (${objects}) AS object`,
    values: [schema],
  }
}

/** In an order of their own, so that two lists can be compared as they are. */
export function objectsFrom(rows: readonly Row[]): CatalogueObject[] {
  return rows
    .map((row) => ({
      kind: row['kind'] as ObjectKind,
      of: String(row['of']),
      name: String(row['name']),
      facts: sorted(JSON.parse(String(row['facts'])) as CatalogueObject['facts']),
    }))
    .map((object) => ({ object, key: keyOf(object) }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ object }) => object)
}

/** Tells one object of a schema from every other. */
export function keyOf({ kind, of, name }: Omit<CatalogueObject, 'facts'>): string {
  return [kind, of, name].join('\0')
}

function sorted(facts: CatalogueObject['facts']): CatalogueObject['facts'] {
  return Object.fromEntries(Object.entries(facts).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
