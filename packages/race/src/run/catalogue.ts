import type { Control } from './control.ts'

/** What has to be known about a table to tell what a statement on it touches. */
export interface Relation {
  readonly name: string
  readonly kind: 'table' | 'sequence' | 'other'
  /** Its name for footprints: of a partition the one of the partitioned table. */
  readonly object: string
  /** Triggers, rules, policies, or functions of the user's in defaults and constraints. */
  readonly active: boolean
  /** Objects that its foreign keys refer to. */
  readonly parents: ReadonlySet<string>
  /** Columns that foreign keys of others refer to. */
  readonly referenced: ReadonlySet<string>
  /** Constraints or triggers that may wait until the commit. */
  readonly deferred: boolean
  /** Columns of each unique index; empty for an exclusion constraint or an expression. */
  readonly uniques: readonly (readonly string[])[]
  /** Columns whose default cannot repeat: from a sequence (with its object id), or random. */
  readonly generated: ReadonlyMap<string, number | 'random'>
}

export interface Catalogue {
  /** Changes when tables are made, dropped or altered. */
  readonly stamp: string
  readonly relations: ReadonlyMap<number, Relation>
  /** Tables by bare name; several schemas may have one of the name. */
  readonly named: ReadonlyMap<string, readonly Relation[]>
  readonly functions: ReadonlySet<string>
  /** Object ids of indexes, whose locks say nothing that their tables' do not. */
  readonly ignored: ReadonlySet<number>
}

/** Cheap enough for every run: it tells whether the catalogue has to be read again. */
const stampText = `
  SELECT concat_ws(':',
    (SELECT concat(count(*), '.', sum(c.oid::int8), '.', sum(c.relnatts))
     FROM pg_catalog.pg_class c
     WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'S', 'v', 'm', 'f', 'i')),
    (SELECT concat(count(*), '.', sum(t.oid::int8)) FROM pg_catalog.pg_trigger t),
    (SELECT concat(count(*), '.', sum(k.oid::int8))
     FROM pg_catalog.pg_constraint k WHERE k.oid >= 16384),
    (SELECT concat(count(*), '.', sum(d.oid::int8)) FROM pg_catalog.pg_attrdef d),
    (SELECT concat(count(*), '.', sum(p.oid::int8))
     FROM pg_catalog.pg_proc p WHERE p.oid >= 16384)) AS stamp`

const relationsText = `
  SELECT c.oid::int8::text AS oid, n.nspname AS schema, c.relname AS name, c.relkind AS kind,
         coalesce(rn.nspname || '.' || r.relname, n.nspname || '.' || c.relname) AS object,
         c.relpersistence = 't' AS temporary,
         c.relkind = 'r' AND c.relhasrules OR c.relrowsecurity OR c.relkind IN ('v', 'f')
           OR EXISTS (SELECT FROM pg_catalog.pg_trigger t
                      WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
           OR EXISTS (SELECT FROM pg_catalog.pg_depend d
                      WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid >= 16384
                        AND d.deptype = 'n'
                        AND (d.classid = 'pg_attrdef'::regclass AND d.objid IN
                               (SELECT a.oid FROM pg_catalog.pg_attrdef a WHERE a.adrelid = c.oid)
                          OR d.classid = 'pg_constraint'::regclass AND d.objid IN
                               (SELECT k.oid FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid)
                          OR d.classid = 'pg_class'::regclass AND d.objid IN
                               (SELECT i.indexrelid FROM pg_catalog.pg_index i
                                WHERE i.indrelid = c.oid))) AS active,
         EXISTS (SELECT FROM pg_catalog.pg_trigger t
                 WHERE t.tgrelid = c.oid AND t.tgdeferrable)
           OR EXISTS (SELECT FROM pg_catalog.pg_constraint k
                      WHERE k.conrelid = c.oid AND k.condeferrable) AS deferred
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_class r
    ON c.relispartition AND r.oid = pg_catalog.pg_partition_root(c.oid)
  LEFT JOIN pg_catalog.pg_namespace rn ON rn.oid = r.relnamespace
  WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'S', 'v', 'm', 'f')
    AND n.nspname NOT LIKE 'pg\\_toast%'`

const keysText = `
  SELECT k.conrelid::int8::text AS child, k.confrelid::int8::text AS parent,
         (SELECT array_agg(a.attname::text) FROM pg_catalog.pg_attribute a
          WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)) AS columns
  FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.conrelid >= 16384`

const uniquesText = `
  SELECT i.indrelid::int8::text AS relation,
         CASE WHEN i.indisexclusion THEN '{}' ELSE
           coalesce((SELECT array_agg(a.attname::text) FROM pg_catalog.pg_attribute a
                     WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)), '{}')
         END AS columns
  FROM pg_catalog.pg_index i
  WHERE (i.indisunique OR i.indisexclusion) AND i.indrelid >= 16384`

const generatedText = `
  SELECT a.attrelid::int8::text AS relation, a.attname AS column,
         s.objid::int8::text AS sequence,
         coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid)
           ~ '(gen_random_uuid|uuid_generate_v[14]|uuidv[47])', false) AS random
  FROM pg_catalog.pg_attribute a
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN LATERAL (
    -- An identity owns its sequence, a default refers to one.
    SELECT q.oid AS objid FROM pg_catalog.pg_depend p JOIN pg_catalog.pg_class q
      ON q.relkind = 'S' AND q.oid IN (p.objid, p.refobjid)
    WHERE a.attidentity <> '' AND p.deptype = 'i' AND p.classid = 'pg_class'::regclass
        AND p.refobjid = a.attrelid AND p.refobjsubid = a.attnum
      OR p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
        AND p.refclassid = 'pg_class'::regclass AND p.refobjid = q.oid
    LIMIT 1) s ON true
  WHERE a.attrelid >= 16384 AND a.attnum > 0 AND NOT a.attisdropped
    AND (a.attidentity <> '' OR a.atthasdef)`

export async function readStamp(control: Control): Promise<string> {
  const { rows } = await control.client.query<{ stamp: string }>({
    name: 'holdfast_race_stamp',
    text: stampText,
  })
  return rows[0]?.stamp ?? ''
}

export async function readCatalogue(control: Control): Promise<Catalogue> {
  const stamp = await readStamp(control)
  const { client } = control
  const relations = await client.query<{
    oid: string
    schema: string
    name: string
    kind: string
    object: string
    temporary: boolean
    active: boolean
    deferred: boolean
  }>(relationsText)
  const keys = await client.query<{ child: string; parent: string; columns: string[] }>(keysText)
  const uniques = await client.query<{ relation: string; columns: string[] }>(uniquesText)
  const generated = await client.query<{
    relation: string
    column: string
    sequence: string | null
    random: boolean
  }>(generatedText)
  const functions = await client.query<{ name: string }>(
    `SELECT DISTINCT proname AS name FROM pg_catalog.pg_proc WHERE oid >= 16384`,
  )

  const indexes = await client.query<{ oid: string }>(
    `SELECT oid::int8::text AS oid FROM pg_catalog.pg_class
     WHERE oid >= 16384 AND relkind IN ('i', 'I', 't', 'c')`,
  )

  const objects = new Map(relations.rows.map(({ oid, object }) => [oid, object]))
  const byOid = new Map<number, Relation>()
  for (const row of relations.rows) {
    byOid.set(Number(row.oid), {
      name: row.name,
      kind: row.temporary ? 'other' : (kinds[row.kind] ?? 'other'),
      object: row.object,
      active: row.active,
      deferred: row.deferred,
      parents: new Set(
        keys.rows
          .filter(({ child }) => child === row.oid)
          .map(({ parent }) => objects.get(parent) ?? ''),
      ),
      referenced: new Set(
        keys.rows.filter(({ parent }) => parent === row.oid).flatMap(({ columns }) => columns),
      ),
      uniques: uniques.rows
        .filter(({ relation }) => relation === row.oid)
        .map(({ columns }) => columns),
      generated: new Map(
        generated.rows
          .filter(({ relation, sequence, random }) => relation === row.oid && (sequence || random))
          .map(({ column, sequence }) => [column, sequence ? Number(sequence) : 'random']),
      ),
    })
  }
  const named = new Map<string, Relation[]>()
  for (const relation of byOid.values()) {
    named.set(relation.name, [...(named.get(relation.name) ?? []), relation])
  }
  return {
    stamp,
    relations: byOid,
    named,
    functions: new Set(functions.rows.map(({ name }) => name)),
    ignored: new Set(indexes.rows.map(({ oid }) => Number(oid))),
  }
}

const kinds: Readonly<Record<string, Relation['kind']>> = {
  r: 'table',
  p: 'table',
  m: 'table',
  f: 'table',
  S: 'sequence',
}
