/**
 * Functions of the server whose answer, or whose effect, is no part of what the explorer controls: physical sizes,
 * statistics, transaction ids, the log, other sessions, files. They are not listed: whatever is not immutable and not known
 * to be harmless is one of them.
 */
import type { Client } from 'pg'
import { type CalledRow, calledIn } from './catalogue-text.ts'

/** Clocks, chance, numbers that are drawn, settings, locks that are seen, waits, and what runs SQL that is looked into. */
const harmless = new RegExp(
  `^(${[
    'clock_timestamp|timeofday|current_query|random(_normal)?|setseed|gen_random_uuid|uuidv[47]|set_config',
    'nextval|currval|lastval|pg_(try_)?advisory_.*|pg_sleep.*|pg_notify|pg_logical_emit_message',
    '(query|cursor|table|schema|database)_to_xml.*|ts_stat|ts_rewrite',
    // Not to be called by anybody, or by triggers and samples.
    'RI_FKey_.*|unique_key_recheck|suppress_redundant_updates_trigger|tsvector_update_trigger.*|bernoulli|system|.*_(handler|validator|recv|send)',
    // About the own session, and about what never changes while flows run.
    'pg_(backend_pid|typeof|client_encoding|char_to_encoding|encoding_to_char|config|conf_load_time|postmaster_start_time|my_temp_schema|is_other_temp_schema|listening_channels|trigger_depth|cursor|prepared_statement|show_all_settings|settings_get_flags|timezone_.*|available_extension.*|extension_update_paths|is_in_recovery|jit_available|tablespace_location|.*collation_actual_version|event_trigger_.*)',
    // About the catalogue, which DDL changes, and about values.
    'pg_(.*_is_visible|get_.*def(_.*)?|get_(expr|keywords|userbyid|object_address|serial_sequence|function_.*|partition_.*|replica_identity_index|publication_tables|catalog_foreign_keys|acl)|describe_object|identify_object.*|index.*_has_property|options_to_table|has_role|collation_for|column_(size|compression|is_updatable|toast_chunk_id)|relation_is_.*|partition_(tree|ancestors)|sequence_parameters|replication_origin_oid|basetype|input_.*|mcv_list_items)',
  ].join('|')})$`,
)

/** Extensions whose functions compute, and nothing else. */
const known: ReadonlySet<string> = new Set([
  'autoinc',
  'bloom',
  'btree_gin',
  'btree_gist',
  'citext',
  'cube',
  'dict_int',
  'dict_xsyn',
  'earthdistance',
  'fuzzystrmatch',
  'hstore',
  'insert_username',
  'intarray',
  'isn',
  'ltree',
  'moddatetime',
  'pg_trgm',
  'pg_uuidv7',
  'pgcrypto',
  'plpgsql',
  'postgis',
  'seg',
  'tablefunc',
  'tsm_system_rows',
  'tsm_system_time',
  'unaccent',
  'uuid-ossp',
  'vector',
])

/** Of the server itself those that are not immutable; of extensions and of the user's own all that are written in C. */
const candidatesText = `
  SELECT p.oid::int8::text AS oid, p.proname::text AS name, NULL AS extension
  FROM pg_catalog.pg_proc p
  WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.oid < 16384
    AND (p.provolatile = 'v' OR p.provolatile = 's' AND p.proname ~ '^(pg|txid|mxid)_')
  UNION ALL SELECT p.oid::int8::text, p.proname::text, coalesce(e.extname::text, '')
  FROM pg_catalog.pg_proc p
  JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname = 'c'
  LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
    AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
  LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
  WHERE p.oid >= 16384 AND p.provolatile <> 'i'`

interface CandidateRow {
  readonly oid: string
  readonly name: string
  /** Null for one of the server's own; empty if it belongs to none. */
  readonly extension: string | null
}

/** Views of the server that are made of such functions: `pg_locks`, `pg_stat_activity`, `pg_sequences`. */
const liveText = `
  WITH RECURSIVE live (oid) AS (
    SELECT w.ev_class FROM pg_catalog.pg_rewrite w, ${calledIn('w.ev_action::text')}
    WHERE w.ev_class < 16384 AND called.ids[1]::oid = ANY ($1::oid[])
    UNION SELECT w.ev_class FROM live
    JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = live.oid
      AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid AND w.ev_class < 16384)
  SELECT DISTINCT c.relname::text AS name FROM live JOIN pg_catalog.pg_class c ON c.oid = live.oid`

/**
 * Where a table or a view calls one of them without being asked: a view of the user's (of those over the server's views it
 * is told by `RelationRow.far`), a policy; a default, a constraint, a trigger's WHEN only where rows are written (28).
 */
const usesText = `
  WITH uses (relation, type, expression) AS (
    SELECT ev_class, 0, ev_action::text FROM pg_catalog.pg_rewrite WHERE ev_class >= 16384
    UNION ALL SELECT polrelid, 0, concat(polqual::text, polwithcheck::text) FROM pg_catalog.pg_policy
    UNION ALL SELECT adrelid, 28, adbin::text FROM pg_catalog.pg_attrdef
    UNION ALL SELECT conrelid, 28, conbin::text FROM pg_catalog.pg_constraint WHERE contype = 'c' AND conrelid <> 0
    UNION ALL SELECT tgrelid, 28, tgqual::text FROM pg_catalog.pg_trigger WHERE tgqual IS NOT NULL)
  SELECT DISTINCT u.relation::int8::text AS relation, p.proname::text AS name, u.type, false AS late
  FROM uses u, ${calledIn('u.expression')} JOIN pg_catalog.pg_proc p ON p.oid = called.ids[1]::oid
  WHERE called.ids[1]::oid = ANY ($1::oid[])`

/** What is beyond the explorer's control in a database. */
export interface Open {
  readonly functions: ReadonlySet<string>
  readonly views: ReadonlySet<string>
  readonly uses: readonly CalledRow[]
}

/** By version: what a server has by itself does not change. */
const liveViews = new Map<string, ReadonlySet<string>>()

export async function readOpen(client: Client): Promise<Open> {
  const candidates = (await client.query<CandidateRow>(candidatesText)).rows
  const open = candidates.filter(({ name, extension }) =>
    extension === null ? !harmless.test(name) : !known.has(extension),
  )
  const oids = open.map(({ oid }) => oid)
  const { rows } = await client.query<{ version: string }>('SELECT pg_catalog.version() AS version')
  const version = rows[0]?.version ?? ''
  let views = liveViews.get(version)
  if (!views) {
    const live = (await client.query<{ name: string }>(liveText, [oids])).rows
    views = new Set([...live.map(({ name }) => name), 'pg_largeobject', 'pg_largeobject_metadata'])
    liveViews.set(version, views)
  }
  const uses = (await client.query<CalledRow>(usesText, [oids])).rows
  return { functions: new Set(open.map(({ name }) => name)), views, uses }
}
