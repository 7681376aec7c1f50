import type { Row, Statement } from '../../../core/driver.ts'
import { plainly } from '../observe/settings.ts'
import { cat, eq, gt, matches, ne, per, plus } from '../sql/operators.ts'

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
    `pg_catalog.set_config('${name}', ${value}, true) AS ${name}`
  return {
    text: `SELECT ${[
      set('search_path', `pg_catalog.quote_ident($1::pg_catalog.text) ${cat} ', pg_temp'`),
      set('timezone', "'UTC'"),
      set('datestyle', "'ISO, MDY'"),
      set('intervalstyle', "'postgres'"),
      ...plainly,
    ].join(', ')}`,
    values: [schema],
  }
}

/** The major version of the server. */
export const serverMajor: Statement = {
  text: `SELECT (pg_catalog.current_setting('server_version_num')::pg_catalog.int4 ${per} 10000)::pg_catalog.text AS major`,
  values: [],
}

const yes = (condition: string): string => `CASE WHEN ${condition} THEN 'yes' END`
/** md5 does not exist on servers that follow FIPS. */
const digest = (text: string): string =>
  `pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(${text}, 'UTF8')), 'hex')`

const objects = `
WITH space AS (
  SELECT oid, pg_catalog.quote_ident(nspname) AS plain,
         '"' ${cat} pg_catalog.replace(nspname, '"', '""') ${cat} '"' AS quoted
  FROM pg_catalog.pg_namespace WHERE nspname ${eq} $1::pg_catalog.text::pg_catalog.name
), relation AS (
  SELECT class.* FROM pg_catalog.pg_class AS class JOIN space ON class.relnamespace ${eq} space.oid
  WHERE NOT class.relispartition
), month AS (
  -- A month that was detached, to be archived.
  SELECT relation.oid FROM relation JOIN relation AS parent
    ON parent.relkind ${eq} 'p' AND relation.relkind ${eq} 'r'
    AND pg_catalog.starts_with(relation.relname, parent.relname)
    AND pg_catalog.substr(relation.relname, pg_catalog.length(parent.relname) ${plus} 1) ${matches} '^_?p?[0-9]{4}_?[0-9]{2}$'
), held AS (
  SELECT * FROM relation WHERE relkind ${ne} 'i' AND relkind ${ne} 'I' AND NOT (oid ${eq} ANY (SELECT oid FROM month))
)
SELECT CASE WHEN relkind ${eq} ANY ('{v,m}') THEN 'view' WHEN relkind ${eq} 'S' THEN 'sequence'
         WHEN relkind ${eq} 'c' THEN 'type' ELSE 'table' END AS kind,
       '' AS "of", relname::pg_catalog.text AS name,
       pg_catalog.jsonb_build_object(
         'partitioned', pg_catalog.pg_get_partkeydef(oid),
         'unlogged', ${yes(`relpersistence ${ne} 'p'`)},
         'rowSecurity', ${yes('relrowsecurity OR relforcerowsecurity')},
         'materialized', ${yes(`relkind ${eq} 'm'`)},
         'foreign', ${yes(`relkind ${eq} 'f'`)},
         'options', CASE WHEN relkind ${eq} 'v' THEN pg_catalog.array_to_string(reloptions, ', ') END,
         'columns', CASE WHEN relkind ${eq} ANY ('{v,m,c}') THEN (
           SELECT pg_catalog.string_agg(attname ${cat} ' ' ${cat} pg_catalog.format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
           FROM pg_catalog.pg_attribute WHERE attrelid ${eq} held.oid AND attnum ${gt} 0 AND NOT attisdropped) END,
         'definition', CASE WHEN relkind ${eq} ANY ('{v,m}') THEN ${digest('pg_catalog.pg_get_viewdef(oid)')} END
       ) AS facts
FROM held
UNION ALL
SELECT 'column', held.relname, attname,
       pg_catalog.jsonb_build_object(
         'type', pg_catalog.format_type(atttypid, atttypmod),
         'notNull', ${yes('attnotnull')},
         'default', CASE WHEN attgenerated ${eq} '' THEN pg_catalog.pg_get_expr(adbin, adrelid) END,
         'generated', CASE WHEN attgenerated ${ne} '' THEN pg_catalog.pg_get_expr(adbin, adrelid) END,
         'identity', CASE WHEN attidentity ${ne} '' THEN attidentity::pg_catalog.text END,
         'collation', (SELECT collname FROM pg_catalog.pg_collation
                       WHERE oid ${eq} attcollation AND collname ${ne} 'default')
       )
FROM held
JOIN pg_catalog.pg_attribute ON attrelid ${eq} held.oid AND attnum ${gt} 0 AND NOT attisdropped
LEFT JOIN pg_catalog.pg_attrdef ON adrelid ${eq} attrelid AND adnum ${eq} attnum
WHERE relkind ${eq} ANY ('{r,p,f}')
UNION ALL
-- NOT NULL is a constraint of its own only since version 18; the columns tell.
SELECT 'constraint', held.relname, conname,
       pg_catalog.jsonb_build_object(
         'definition', pg_catalog.pg_get_constraintdef(pg_constraint.oid),
         'invalid', ${yes('NOT coalesce(indisvalid AND indisready, true)')}
       )
FROM held
JOIN pg_catalog.pg_constraint ON conrelid ${eq} held.oid AND contype ${eq} ANY ('{c,f,p,u,x}') AND conparentid ${eq} 0
LEFT JOIN pg_catalog.pg_index ON indexrelid ${eq} conindid AND indrelid ${eq} conrelid
UNION ALL
SELECT 'index', held.relname, class.relname,
       pg_catalog.jsonb_build_object(
         'unique', ${yes('indisunique')},
         'definition', pg_catalog.substring(pg_catalog.pg_get_indexdef(indexrelid), ' (USING .*)'),
         'invalid', ${yes('NOT (indisvalid AND indisready)')}
       )
FROM held
JOIN pg_catalog.pg_index ON indrelid ${eq} held.oid
JOIN pg_catalog.pg_class AS class ON class.oid ${eq} indexrelid
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conindid ${eq} indexrelid AND contype ${eq} ANY ('{p,u,x}'))
UNION ALL
SELECT 'function', '', proname ${cat} '(' ${cat} pg_catalog.oidvectortypes(proargtypes) ${cat} ')',
       pg_catalog.jsonb_build_object(
         'arguments', pg_catalog.pg_get_function_arguments(pg_proc.oid),
         'result', pg_catalog.pg_get_function_result(pg_proc.oid),
         'language', (SELECT lanname FROM pg_catalog.pg_language WHERE oid ${eq} prolang),
         'kind', CASE WHEN prokind ${ne} 'f' THEN prokind::pg_catalog.text END,
         'volatility', provolatile::pg_catalog.text,
         'strict', ${yes('proisstrict')},
         'parallel', proparallel::pg_catalog.text,
         'leakproof', ${yes('proleakproof')},
         'securityDefiner', ${yes('prosecdef')},
         'searchPath', (SELECT CASE WHEN path ${eq} ANY (ARRAY[plain ${cat} ', pg_temp', quoted ${cat} ', pg_temp']) THEN ':"schema", pg_temp' ELSE path END
           FROM (SELECT pg_catalog.replace(pg_catalog.substr(setting, 13), ', "pg_temp"', ', pg_temp') AS path FROM pg_catalog.unnest(proconfig) AS setting
                 WHERE pg_catalog.starts_with(setting, 'search_path=')) AS pinned),
         'settings', (SELECT pg_catalog.string_agg(setting, ', ' ORDER BY setting COLLATE pg_catalog."C")
           FROM pg_catalog.unnest(proconfig) AS setting WHERE NOT pg_catalog.starts_with(setting, 'search_path=')),
         'body', ${digest(`pg_catalog.replace(prosrc, quoted, ':"schema"')`)}
       )
FROM space JOIN pg_catalog.pg_proc ON pronamespace ${eq} space.oid
UNION ALL
-- A partition has copies of the triggers, which only matter if somebody turned one off.
SELECT 'trigger', class.relname, tgname,
       pg_catalog.jsonb_build_object(
         'definition', CASE WHEN tgparentid ${eq} 0 THEN pg_catalog.pg_get_triggerdef(pg_trigger.oid, true) END,
         'copy', ${yes(`tgparentid ${ne} 0`)},
         'disabled', ${yes(`tgenabled ${ne} 'O'`)}
       )
FROM space JOIN pg_catalog.pg_class AS class ON relnamespace ${eq} space.oid
JOIN pg_catalog.pg_trigger ON tgrelid ${eq} class.oid AND NOT tgisinternal
WHERE (tgparentid ${eq} 0 AND NOT relispartition) OR (tgparentid ${ne} 0 AND tgenabled ${ne} 'O')
UNION ALL
SELECT 'rule', held.relname, rulename, pg_catalog.jsonb_build_object('definition', pg_catalog.pg_get_ruledef(pg_rewrite.oid, true))
FROM held JOIN pg_catalog.pg_rewrite ON ev_class ${eq} held.oid AND rulename ${ne} '_RETURN'
UNION ALL
SELECT 'type', '', typname,
       pg_catalog.jsonb_build_object(
         'labels', (SELECT pg_catalog.string_agg(enumlabel, ', ' ORDER BY enumsortorder)
                    FROM pg_catalog.pg_enum WHERE enumtypid ${eq} pg_type.oid),
         'base', CASE WHEN typtype ${eq} 'd' THEN pg_catalog.format_type(typbasetype, typtypmod) END,
         'checks', (SELECT pg_catalog.string_agg(pg_catalog.pg_get_constraintdef(oid), ', ' ORDER BY conname)
                    FROM pg_catalog.pg_constraint WHERE contypid ${eq} pg_type.oid AND contype ${eq} 'c')
       )
FROM space JOIN pg_catalog.pg_type ON typnamespace ${eq} space.oid AND typtype ${eq} ANY ('{d,e}')`

/** Everything in the schema; `fixDescriptions` has to come before it, in the same transaction. */
export function readObjects(schema: string): Statement {
  return {
    text: `SELECT kind, "of", name, pg_catalog.jsonb_strip_nulls(facts)::pg_catalog.text AS facts FROM (${objects}) AS object`,
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
