/** The questions to `pg_catalog` that a catalogue is made of. None of them locks a table of the user's. */

/** Cheap enough for every run: it tells whether the catalogue has to be read again. */
export const stampText = `
  SELECT concat_ws(':',
    (SELECT concat(count(*), '.', sum(c.oid::int8), '.', sum(c.relnatts))
     FROM pg_catalog.pg_class c
     WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'S', 'v', 'm', 'f', 'i')),
    (SELECT concat(count(*), '.', sum(t.oid::int8)) FROM pg_catalog.pg_trigger t),
    (SELECT concat(count(*), '.', sum(k.oid::int8))
     FROM pg_catalog.pg_constraint k WHERE k.oid >= 16384),
    (SELECT concat(count(*), '.', sum(d.oid::int8)) FROM pg_catalog.pg_attrdef d),
    (SELECT concat(count(*), '.', sum(p.oid::int8), '.',
                   sum(hashtext(concat(p.provolatile, p.prosrc, p.proargdefaults::text))::int8))
     FROM pg_catalog.pg_proc p WHERE p.oid >= 16384),
    (SELECT concat(count(*), '.', sum(r.oid::int8))
     FROM pg_catalog.pg_rewrite r WHERE r.oid >= 16384),
    (SELECT concat(count(*), '.', sum(s.oid::int8)) FROM pg_catalog.pg_policy s),
    (SELECT concat(count(*), '.', sum(e.oid::int8)) FROM pg_catalog.pg_event_trigger e),
    (SELECT concat(count(*), '.', sum(hashtext(coalesce(y.typdefaultbin::text, ''))::int8))
     FROM pg_catalog.pg_type y WHERE y.oid >= 16384 AND y.typtype = 'd'),
    (SELECT concat(count(*), '.', sum(o.oid::int8))
     FROM pg_catalog.pg_operator o WHERE o.oid >= 16384),
    (SELECT concat(count(*), '.', sum(t.oid::int8))
     FROM pg_catalog.pg_cast t WHERE t.oid >= 16384)) AS stamp`

export interface RelationRow {
  readonly oid: string
  readonly schema: string
  readonly name: string
  readonly kind: string
  readonly object: string
  readonly temporary: boolean
  readonly active: boolean
  readonly indirect: boolean
  readonly deferred: boolean
  readonly far: boolean
}

/** Rules, policies, views, foreign tables, heirs: a query on it reads what it does not name. */
const indirect = `(
  c.relkind IN ('r', 'p') AND c.relhasrules OR c.relrowsecurity OR c.relkind IN ('v', 'f')
  OR c.relkind <> 'p' AND EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid))`

/** Of what a view is about, only what it names itself: those that it names are locked as well, and tell it too. */
const far = `(
  c.relkind = 'f' OR c.relkind IN ('v', 'm') AND EXISTS (
    SELECT FROM pg_catalog.pg_rewrite w
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
      AND d.refclassid = 'pg_class'::regclass
    JOIN pg_catalog.pg_class s ON s.oid = d.refobjid
    WHERE w.ev_class = c.oid
      AND (s.relkind = 'S' OR s.oid < 16384 AND s.relname IN
        ('pg_locks', 'pg_prepared_xacts', 'pg_sequences') OR s.oid < 16384 AND s.relname LIKE 'pg_stat%')))`

/** Operators of the user's that are not written in C. */
const ownOperators = `
  SELECT o.oid FROM pg_catalog.pg_operator o
  JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
  JOIN pg_catalog.pg_language l ON l.oid = p.prolang
  WHERE o.oid >= 16384 AND l.lanname NOT IN ('c', 'internal')`

export const relationsText: string = `
  SELECT c.oid::int8::text AS oid, n.nspname AS schema, c.relname AS name, c.relkind AS kind,
         coalesce(rn.nspname || '.' || r.relname, n.nspname || '.' || c.relname) AS object,
         c.relpersistence = 't' AS temporary,
         ${indirect} AS indirect,
         ${far} AS far,
         ${indirect}
           OR EXISTS (SELECT FROM pg_catalog.pg_trigger t
                      WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
           OR EXISTS (SELECT FROM pg_catalog.pg_depend d
                      WHERE (d.refclassid = 'pg_proc'::regclass AND d.refobjid >= 16384
                          OR d.refclassid = 'pg_operator'::regclass AND d.refobjid IN (${ownOperators}))
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

export interface CalledRow {
  readonly relation: string
  /** Null for a rule, which runs statements and has no name. */
  readonly name: string | null
  /** By INSERT (4), DELETE (8) or UPDATE (16), before the row is written (2), for each row (1); 0 if by any use. */
  readonly type: number
  /** It may be put off until the COMMIT. */
  readonly late: boolean
}

/** The command that a rule is for, in the bits of triggers; 0 for the one that makes a view. */
function ruleEvent(rule: string): string {
  return `CASE ${rule}.ev_type WHEN '2' THEN 16 WHEN '3' THEN 4 WHEN '4' THEN 8 ELSE 0 END`
}

/** The functions that a stored expression calls, operators and aggregates included: a row for each time. */
export const calledIn = (expression: string): string =>
  `LATERAL regexp_matches(${expression}, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\\d+) ', 'g') AS called (ids)`

/**
 * Code of the user's that is run by a statement on a table or a view, and is not named in the statement: a row for each
 * place that runs it. A default, a check and an index are of each row (1), as a trigger may be. A view runs what the views
 * run that it is made of.
 */
export const calledText: string = `
  WITH RECURSIVE made_of (view, part) AS (
    SELECT oid, oid FROM pg_catalog.pg_class WHERE oid >= 16384 AND relkind IN ('v', 'm')
    UNION SELECT m.view, v.oid
    FROM made_of m JOIN pg_catalog.pg_rewrite w ON w.ev_class = m.part
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
      AND d.refclassid = 'pg_class'::regclass
    JOIN pg_catalog.pg_class v ON v.oid = d.refobjid AND v.relkind = 'v'),
  uses (relation, type, expression) AS (
    SELECT adrelid, 31, adbin::text FROM pg_catalog.pg_attrdef
    UNION ALL SELECT conrelid, 31, conbin::text FROM pg_catalog.pg_constraint WHERE contype = 'c'
    UNION ALL SELECT indrelid, 29, concat(indexprs::text, indpred::text) FROM pg_catalog.pg_index
    UNION ALL SELECT tgrelid, tgtype::int, tgqual::text FROM pg_catalog.pg_trigger
    WHERE tgqual IS NOT NULL AND tgenabled <> 'D'
    UNION ALL SELECT polrelid, 0, concat(polqual::text, polwithcheck::text) FROM pg_catalog.pg_policy
    UNION ALL SELECT w.ev_class, ${ruleEvent('w')}, concat(w.ev_qual::text, w.ev_action::text)
    FROM pg_catalog.pg_rewrite w
    UNION ALL SELECT m.view, ${ruleEvent('w')}, concat(w.ev_qual::text, w.ev_action::text)
    FROM made_of m JOIN pg_catalog.pg_rewrite w ON w.ev_class = m.part AND m.part <> m.view)
  SELECT t.tgrelid::int8::text AS relation, p.proname AS name, t.tgtype::int AS type, t.tgdeferrable AS late
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
  WHERE NOT t.tgisinternal AND t.tgenabled <> 'D'
  UNION ALL SELECT r.ev_class::int8::text, NULL, ${ruleEvent('r')}, false
  FROM pg_catalog.pg_rewrite r
  WHERE r.oid >= 16384 AND r.rulename <> '_RETURN'
  UNION ALL SELECT u.relation::int8::text, p.proname, u.type, false
  FROM uses u, ${calledIn('u.expression')} JOIN pg_catalog.pg_proc p ON p.oid = called.ids[1]::oid
  WHERE u.relation >= 16384 AND p.oid >= 16384`

/**
 * Functions and procedures that are not written in C, also by the names of the operators and aggregates that are made of
 * them. A body of SQL that the server has parsed (BEGIN ATOMIC) is not to
 * be had without locks on its tables.
 */
export const routinesText: string = `
  SELECT u.name, l.lanname AS language, p.provolatile = 'v' AS volatile,
         CASE WHEN l.lanname = 'plpgsql' THEN pg_catalog.pg_get_functiondef(p.oid)
              WHEN l.lanname = 'sql' AND p.prosqlbody IS NULL THEN p.prosrc END AS body,
         ARRAY(SELECT d.proname::text
               FROM ${calledIn('p.proargdefaults::text')} JOIN pg_catalog.pg_proc d ON d.oid = called.ids[1]::oid
               WHERE d.oid >= 16384) AS defaults
  FROM (SELECT oid, proname AS name FROM pg_catalog.pg_proc
        UNION ALL SELECT oprcode, oprname FROM pg_catalog.pg_operator WHERE oid >= 16384
        UNION ALL SELECT f.oid, a.proname
        FROM pg_catalog.pg_aggregate g JOIN pg_catalog.pg_proc a ON a.oid = g.aggfnoid
        JOIN pg_catalog.pg_proc f ON f.oid IN (g.aggtransfn, g.aggfinalfn, g.aggmtransfn)
        WHERE a.oid >= 16384) u (oid, name)
  JOIN pg_catalog.pg_proc p ON p.oid = u.oid JOIN pg_catalog.pg_language l ON l.oid = p.prolang
  WHERE p.oid >= 16384 AND p.prokind <> 'a' AND l.lanname NOT IN ('c', 'internal')
  ORDER BY p.oid, 1`

export interface ForeignKeyRow {
  readonly child: string
  readonly parent: string
  readonly columns: string[]
  readonly acts: boolean
  readonly sets: boolean
}

/**
 * `acts`: it changes the rows that refer, and does not only look whether there are any. `sets`: it
 * may give them another value, which is then looked for in the tables that they refer to.
 */
export const foreignKeysText = `
  SELECT k.conrelid::int8::text AS child, k.confrelid::int8::text AS parent,
         k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd') AS acts,
         k.confdeltype IN ('n', 'd') OR k.confupdtype IN ('c', 'n', 'd') AS sets,
         (SELECT array_agg(a.attname::text) FROM pg_catalog.pg_attribute a
          WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)) AS columns
  FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.conrelid >= 16384`

export interface UniqueRow {
  readonly relation: string
  readonly columns: string[]
  readonly depends: string[]
  readonly key: boolean
}

/**
 * Indexes that keep rows apart. `columns` is empty for an exclusion constraint or an expression;
 * `depends` are all columns that it looks at, those of its expressions and its WHERE included; a
 * `key` names one row at most. The primary key comes first.
 */
export const uniquesText = `
  SELECT i.indrelid::int8::text AS relation,
         CASE WHEN i.indisexclusion THEN '{}' ELSE
           coalesce((SELECT array_agg(a.attname::text ORDER BY a.attname)
                     FROM pg_catalog.pg_attribute a
                     WHERE a.attrelid = i.indrelid
                       AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])), '{}')
         END AS columns,
         coalesce((SELECT array_agg(DISTINCT a.attname::text) FROM pg_catalog.pg_attribute a
                   WHERE a.attrelid = i.indrelid AND a.attnum > 0
                     AND (a.attnum = ANY (i.indkey) OR EXISTS
                       (SELECT FROM pg_catalog.pg_depend d
                        WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid
                          AND d.refobjsubid = a.attnum))), '{}') AS depends,
         i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
                           WHERE a.attrelid = i.indrelid AND NOT a.attnotnull
                             AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])) AS key
  FROM pg_catalog.pg_index i
  WHERE (i.indisunique OR i.indisexclusion) AND i.indrelid >= 16384
  ORDER BY i.indrelid, i.indisprimary DESC, i.indexrelid`

export interface ColumnRow {
  readonly relation: string
  readonly column: string
  readonly type: string | null
  readonly computed: boolean
  readonly sequence: string | null
  readonly random: boolean
}

const randomFunctions = [
  'gen_random_uuid',
  'uuid_generate_v1',
  'uuid_generate_v4',
  'uuidv4',
  'uuidv7',
]

/** Functions whose values do not come twice. */
export const drawingFunctions: readonly string[] = ['nextval', ...randomFunctions]

/**
 * Matches a stored expression that calls one of the functions. PostgreSQL would print the expression too, but it locks
 * the table to do so, and a flow that waits at the gate may have it locked.
 */
export function callsOf(functions: readonly string[]): string {
  return `(SELECT ':funcid (' || coalesce(string_agg(p.oid::text, '|'), '0') || ') '
          FROM pg_catalog.pg_proc p WHERE p.proname IN (${functions.map((name) => `'${name}'`).join(', ')}))`
}

/** In the order of the table. `type` is null where equal values may be written differently. */
export const columnsText: string = `
  SELECT a.attrelid::int8::text AS relation, a.attname AS column,
         CASE WHEN coalesce(l.collisdeterministic, true) THEN y.typname END AS type,
         a.attgenerated <> '' AS computed,
         s.objid::int8::text AS sequence,
         coalesce(d.adbin::text ~ ${callsOf(randomFunctions)}, false) AS random
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'm', 'f')
  LEFT JOIN pg_catalog.pg_type y
    ON y.oid = a.atttypid AND y.typnamespace = 'pg_catalog'::regnamespace
  LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN LATERAL (
    -- An identity owns its sequence, a default refers to one.
    SELECT q.oid AS objid FROM pg_catalog.pg_depend p JOIN pg_catalog.pg_class q
      ON q.relkind = 'S' AND q.oid IN (p.objid, p.refobjid)
    WHERE a.attidentity <> '' AND p.deptype = 'i' AND p.classid = 'pg_class'::regclass
        AND p.refobjid = a.attrelid AND p.refobjsubid = a.attnum
      OR p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
        AND p.refclassid = 'pg_class'::regclass AND p.refobjid = q.oid
    LIMIT 1) s ON a.attidentity <> '' OR a.atthasdef
  WHERE a.attrelid >= 16384 AND a.attnum > 0 AND NOT a.attisdropped
  ORDER BY a.attrelid, a.attnum`

export interface CodeRow {
  readonly name: string
  readonly kind: 'function' | 'attribute' | 'operator' | 'conversion' | 'event'
}

/**
 * Code of the user's: functions, those of one row that `person.title` may call, and operators that
 * are not written in C. A `conversion` is code that values meet without being named in any statement: a cast, what a
 * CHECK or the DEFAULT of a domain calls, or how an operator class compares. An `event` is code that DDL runs.
 */
export const codeText: string = `
  SELECT DISTINCT proname AS name, 'function' AS kind FROM pg_catalog.pg_proc WHERE oid >= 16384
  UNION SELECT p.proname, 'attribute' FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_type y ON y.oid = p.proargtypes[0] AND y.typtype = 'c'
  WHERE p.oid >= 16384 AND p.pronargs = 1
  UNION SELECT oprname, 'operator' FROM pg_catalog.pg_operator WHERE oid IN (${ownOperators})
  UNION SELECT p.proname, 'conversion' FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname NOT IN ('c', 'internal')
  WHERE p.oid >= 16384
    AND (EXISTS (SELECT FROM pg_catalog.pg_cast t WHERE t.castfunc = p.oid)
      OR EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_constraint k
                   ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid AND k.contypid <> 0
                 WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid)
      OR EXISTS (SELECT FROM pg_catalog.pg_depend d
                 WHERE d.classid = 'pg_type'::regclass AND d.refclassid = 'pg_proc'::regclass
                   AND d.refobjid = p.oid)
      OR EXISTS (SELECT FROM pg_catalog.pg_amproc f WHERE f.amproc = p.oid))
  UNION SELECT p.proname, 'event' FROM pg_catalog.pg_event_trigger e
    JOIN pg_catalog.pg_proc p ON p.oid = e.evtfoid
  WHERE e.evtenabled <> 'D'`

export const indexesText = `
  SELECT oid::int8::text AS oid FROM pg_catalog.pg_class
  WHERE oid >= 16384 AND relkind IN ('i', 'I', 't', 'c')`
