/**
 * Every way a schema can drift that SQL can put right: the drift, with `S` for the schema, and the one
 * finding it must lead to.
 */
export const drifts: Record<string, readonly [drift: string, code: string, object: string]> = {
  'a missing column': [
    'ALTER TABLE S.note DROP COLUMN weight',
    'column-missing',
    'column note.weight',
  ],
  'a further column': ['ALTER TABLE S.note ADD more int', 'column-extra', 'column note.more'],
  'a column of another type': [
    'ALTER TABLE S.note ALTER weight TYPE int8',
    'column-changed',
    'column note.weight',
  ],
  'a column of another length': [
    'ALTER TABLE S.note ALTER tag TYPE varchar(50)',
    'column-changed',
    'column note.tag',
  ],
  'a column that may be null': [
    'ALTER TABLE S.note ALTER body DROP NOT NULL',
    'column-changed',
    'column note.body',
  ],
  'a column that may not be null': [
    'ALTER TABLE S.note ALTER tag SET NOT NULL',
    'column-changed',
    'column note.tag',
  ],
  'a column with another default': [
    "ALTER TABLE S.note ALTER body SET DEFAULT 'c'",
    'column-changed',
    'column note.body',
  ],
  'a column without its default': [
    'ALTER TABLE S.note ALTER body DROP DEFAULT',
    'column-changed',
    'column note.body',
  ],
  'a column with a default of its own': [
    "ALTER TABLE S.note ALTER tag SET DEFAULT ''",
    'column-changed',
    'column note.tag',
  ],
  'a missing index': ['DROP INDEX S.note_by_tag', 'index-missing', 'index note.note_by_tag'],
  'a missing unique index': [
    'DROP INDEX S.note_tag_once',
    'index-missing',
    'index note.note_tag_once',
  ],
  'an index on something else': [
    'DROP INDEX S.note_by_tag; CREATE INDEX note_by_tag ON S.note (tag)',
    'index-changed',
    'index note.note_by_tag',
  ],
  'an index that is no longer unique': [
    'DROP INDEX S.note_tag_once; CREATE INDEX note_tag_once ON S.note (bucket, tag)',
    'index-changed',
    'index note.note_tag_once',
  ],
  'a further unique index': [
    'CREATE UNIQUE INDEX once ON S.note (body)',
    'index-extra',
    'index note.once',
  ],
  'a missing index of a partitioned table': [
    'DROP INDEX S.log_by_line',
    'index-missing',
    'index log.log_by_line',
  ],
  'an invalid index': [
    "UPDATE pg_catalog.pg_index SET indisvalid = false WHERE indexrelid = pg_catalog.to_regclass('S.note_by_tag')",
    'index-invalid',
    'index note.note_by_tag',
  ],
  'an invalid index of a primary key': [
    "UPDATE pg_catalog.pg_index SET indisvalid = false WHERE indexrelid = pg_catalog.to_regclass('S.note_pkey')",
    'index-invalid',
    'constraint note.note_pkey',
  ],
  'a missing check': [
    'ALTER TABLE S.note DROP CONSTRAINT note_state',
    'constraint-missing',
    'constraint note.note_state',
  ],
  'a check of something else': [
    'ALTER TABLE S.note DROP CONSTRAINT note_state, ADD CONSTRAINT note_state CHECK (state >= -1)',
    'constraint-changed',
    'constraint note.note_state',
  ],
  'a check that was not validated': [
    'ALTER TABLE S.note DROP CONSTRAINT note_state, ADD CONSTRAINT note_state CHECK (state >= 0) NOT VALID',
    'constraint-changed',
    'constraint note.note_state',
  ],
  'a further check': [
    "ALTER TABLE S.note ADD CONSTRAINT more CHECK (body <> '')",
    'constraint-extra',
    'constraint note.more',
  ],
  'a missing primary key': [
    'ALTER TABLE S.note DROP CONSTRAINT note_pkey',
    'constraint-missing',
    'constraint note.note_pkey',
  ],
  'a changed function body': [
    "CREATE OR REPLACE FUNCTION S.b_trim(body text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS ' SELECT body '",
    'function-changed',
    'function b_trim(text)',
  ],
  'a function that may change data': [
    'ALTER FUNCTION S.b_trim VOLATILE',
    'function-changed',
    'function b_trim(text)',
  ],
  'a function with a setting': [
    "ALTER FUNCTION S.add_note SET work_mem = '1MB'",
    'function-changed',
    'function add_note(bigint, text)',
  ],
  'a function without SECURITY DEFINER': [
    'ALTER FUNCTION S.add_note SECURITY INVOKER',
    'function-security',
    'function add_note(bigint, text)',
  ],
  'a function that got SECURITY DEFINER': [
    'ALTER FUNCTION S.tidy SECURITY DEFINER',
    'function-security',
    'function tidy()',
  ],
  'a function without its search_path': [
    'ALTER FUNCTION S.add_note RESET search_path',
    'function-search-path',
    'function add_note(bigint, text)',
  ],
  'a function with another search_path': [
    'ALTER FUNCTION S.add_note SET search_path = S, public',
    'function-search-path',
    'function add_note(bigint, text)',
  ],
  'a missing function': ['DROP FUNCTION S.tidy', 'function-missing', 'function tidy()'],
  'a function of others': [
    'CREATE FUNCTION S.add_note(int, text) RETURNS text LANGUAGE sql AS $$ SELECT $2 $$; REVOKE ALL ON FUNCTION S.add_note(int, text) FROM PUBLIC',
    'function-extra',
    'function add_note(integer, text)',
  ],
  'a function that everyone may execute': [
    'GRANT EXECUTE ON FUNCTION S.add_note TO PUBLIC',
    'public-privilege',
    'function add_note(bigint, text)',
  ],
  'a table that everyone may read': [
    'GRANT SELECT ON S.note TO PUBLIC',
    'public-privilege',
    'table note',
  ],
  'a partition that everyone may read': [
    'GRANT SELECT ON S.log_default TO PUBLIC',
    'public-privilege',
    'table log_default',
  ],
  'a column that everyone may write': [
    'GRANT UPDATE (body) ON S.note TO PUBLIC',
    'public-privilege',
    'column note.body',
  ],
  'a schema that everyone may create in': [
    'GRANT CREATE, USAGE ON SCHEMA S TO PUBLIC',
    'public-privilege',
    'schema',
  ],
  'a missing trigger': [
    'DROP TRIGGER log_append_only ON S.log',
    'trigger-missing',
    'trigger log.log_append_only',
  ],
  'a trigger that fires less often': [
    'DROP TRIGGER log_append_only ON S.log; CREATE TRIGGER log_append_only BEFORE UPDATE ON S.log FOR EACH ROW EXECUTE FUNCTION S.refuse()',
    'trigger-changed',
    'trigger log.log_append_only',
  ],
  'a trigger turned off': [
    'ALTER TABLE ONLY S.log DISABLE TRIGGER log_append_only',
    'trigger-disabled',
    'trigger log.log_append_only',
  ],
  'a trigger turned off on one partition': [
    'ALTER TABLE S.log_default DISABLE TRIGGER log_append_only',
    'trigger-disabled',
    'trigger log_default.log_append_only',
  ],
  'a trigger of others': [
    'CREATE TRIGGER theirs BEFORE INSERT ON S.note FOR EACH ROW EXECUTE FUNCTION S.refuse()',
    'trigger-extra',
    'trigger note.theirs',
  ],
  'a rule of others': [
    'CREATE RULE theirs AS ON INSERT TO S.note DO INSTEAD NOTHING',
    'rule-extra',
    'rule note.theirs',
  ],
  'a view of something else': [
    'CREATE OR REPLACE VIEW S.notes AS SELECT id, upper(body) AS body FROM S.note',
    'view-changed',
    'view notes',
  ],
  'a view with another column': [
    'CREATE OR REPLACE VIEW S.notes AS SELECT id, upper(body) AS body, 1 AS one FROM S.note WHERE state = 0',
    'view-changed',
    'view notes',
  ],
  "a view with its reader's rights": [
    'ALTER VIEW S.notes SET (security_invoker = true)',
    'view-changed',
    'view notes',
  ],
  'a missing view': ['DROP VIEW S.notes', 'view-missing', 'view notes'],
  'a view of others': ['CREATE VIEW S.theirs AS SELECT 1 AS one', 'view-extra', 'view theirs'],
  'a table of others': [
    'CREATE TABLE S.theirs (id int PRIMARY KEY)',
    'table-extra',
    'table theirs',
  ],
  'a sequence of others': ['CREATE SEQUENCE S.theirs', 'sequence-extra', 'sequence theirs'],
  'a type of others': ["CREATE TYPE S.theirs AS ENUM ('a')", 'type-extra', 'type theirs'],
  'a table that a crash empties': [
    'ALTER TABLE S.note SET UNLOGGED',
    'table-changed',
    'table note',
  ],
  'row security': ['ALTER TABLE S.note ENABLE ROW LEVEL SECURITY', 'table-changed', 'table note'],
  'a record of a file that is gone': [
    "INSERT INTO S.installed_file VALUES ('internal/gone', '', '0.1.0')",
    'file-leftover',
    'internal/gone',
  ],
}
