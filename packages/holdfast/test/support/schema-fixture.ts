import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import type { Driver } from '../../src/core/driver.ts'
import { type Catalogue, describeSchema } from '../../src/schema/catalogue.ts'
import { type SchemaFile, type SchemaFiles, schemaFile } from '../../src/schema/schema-files.ts'

/** A set of files from texts by name, in the order they are given. */
export function filesOf(version: string, texts: Readonly<Record<string, string>>): SchemaFiles {
  const files = Object.entries(texts).map(([name, text]) => schemaFile(name, text))
  const isMigration = ({ name }: SchemaFile): boolean => name.startsWith('migrations/')
  return {
    version,
    migrations: files.filter(isMigration),
    repeatables: files.filter((file) => !isMigration(file)),
  }
}

/** A small schema with one of everything. */
export const noteTexts: Readonly<Record<string, string>> = {
  'migrations/0001-note': `
-- It's a note; with a semicolon in its comment.
CREATE TABLE :"schema".note (
  bucket smallint NOT NULL,
  id bigint NOT NULL,
  body text NOT NULL DEFAULT 'a; b',
  tag varchar(40),
  weight integer NOT NULL DEFAULT 1,
  state smallint NOT NULL DEFAULT 0 CONSTRAINT note_state CHECK (state >= 0),
  PRIMARY KEY (bucket, id)
);
CREATE INDEX note_by_tag ON :"schema".note (tag) WHERE state = 0;
CREATE UNIQUE INDEX note_tag_once ON :"schema".note (bucket, tag);

CREATE TABLE :"schema".log (
  bucket smallint NOT NULL,
  at timestamptz NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (bucket, at)
) PARTITION BY RANGE (at);
CREATE INDEX log_by_line ON :"schema".log (line);
CREATE TABLE :"schema".log_default PARTITION OF :"schema".log DEFAULT;
CREATE FUNCTION :"schema".refuse() RETURNS trigger
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'append-only';
END;
$$;
CREATE TRIGGER log_append_only BEFORE UPDATE OR DELETE ON :"schema".log
  FOR EACH ROW EXECUTE FUNCTION :"schema".refuse();
`,
  // Calls a function whose file comes later, and is inlined, so it names the schema.
  'internal/a_label': `
CREATE OR REPLACE FUNCTION :"schema".a_label(body text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT :"schema".b_trim(body) || ';' $$;
`,
  'internal/b_trim': `
CREATE OR REPLACE FUNCTION :"schema".b_trim(body text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT btrim(body) $$;
`,
  'views/notes': `
CREATE OR REPLACE VIEW :"schema".notes AS
  SELECT id, upper(body) AS body FROM :"schema".note WHERE state = 0;
`,
  'app/add_note': `
CREATE OR REPLACE FUNCTION :"schema".add_note(id bigint, body text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :"schema", pg_temp AS $body$
BEGIN
  INSERT INTO note (bucket, id, body) VALUES (0, add_note.id, add_note.body);
  RETURN a_label(add_note.body);
END;
$body$;
`,
  'operator/tidy': `
CREATE OR REPLACE FUNCTION :"schema".tidy() RETURNS integer
LANGUAGE sql SET search_path = :"schema", pg_temp AS $$
  WITH gone AS (DELETE FROM note WHERE state > 1 RETURNING 1) SELECT count(*)::int FROM gone
$$;
-- Once, right away.
SELECT :"schema".tidy();
`,
}

/** Version 1 of the notes. */
export const notes: SchemaFiles = filesOf('1.0.0', noteTexts)

/** Version 2: a further migration, one changed function, one that is gone. */
export const notes2: SchemaFiles = filesOf('2.0.0', {
  ...withoutTidy(),
  'migrations/0002-colour': 'ALTER TABLE :"schema".note ADD COLUMN colour text;',
  'app/add_note': (noteTexts['app/add_note'] as string)
    .replace('(bucket, id, body)', '(bucket, id, body, colour)')
    .replace('add_note.body);', "add_note.body, 'red');"),
})

function withoutTidy(): Record<string, string> {
  const { 'operator/tidy': _, ...others } = noteTexts
  return others
}

/** What a schema looks like right now, as the catalogue that is expected of it. */
export async function catalogueOf(
  driver: Driver<pg.PoolClient>,
  schema: string,
): Promise<Catalogue> {
  const { major, objects } = await driver.transaction(
    (transaction) => describeSchema(transaction, schema),
    { scopes: [] },
  )
  return { versions: [major], objects, byVersion: {} }
}

let last = 0

/** A schema name of its own for each test: one database serves a file. */
export function newSchema(): string {
  last += 1
  return `notes "${last}" $$ 'x' \\`
}

/** An identifier as SQL. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A role of its own for each test: roles belong to the server, which all tests share. */
export async function newRole(observer: pg.Pool, attributes = ''): Promise<string> {
  const role = `role "${randomBytes(5).toString('hex')}"`
  await observer.query(`CREATE ROLE ${quoted(role)} ${attributes}`)
  return role
}
