import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bindSchema, objectsIn, statementsOf } from '../../../src/engines/postgres/schema/script.ts'

describe('statements', () => {
  /** Each is one statement, whatever semicolons it contains. */
  const single = [
    'SELECT 1',
    "SELECT 'a;b', 'it''s; so'",
    "SELECT E'it\\'s; so', e'\\\\'",
    `SELECT 1 AS "a;b", 2 AS "c""; d"`,
    'SELECT $$ a; b $$',
    'SELECT $tag$ $$; $other$; $tag$',
    'SELECT $1, a$b$, $2',
    'SELECT 1 -- not; here\n + 2',
    'SELECT /* a; /* b; */ c; */ 1',
    "SELECT '--', 2",
    "SELECT '/*', 2",
    'CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM a; DELETE FROM b)',
    'CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN; END; $$',
    'create or replace function f(a int) returns int begin atomic select 1; select case when a > 1 then 2 end; end',
    'CREATE FUNCTION begin_work() RETURNS int AS $$ SELECT 1; $$',
    'SELECT U&"d;", 1::"char"',
    "SELECT timestamp'2026-01-01; '",
    'SELECT 1.5e3, a1 FROM ü_table',
  ]

  test.each(single)('%s', (statement) => {
    expect(statementsOf(statement)).toEqual([statement])
    expect(statementsOf(`${statement};`)).toEqual([statement])
    expect(statementsOf(`SELECT 0;\n${statement}\n;SELECT 2;`)).toEqual([
      'SELECT 0',
      statement,
      'SELECT 2',
    ])
  })

  test('in any order are the same statements', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...single)),
        fc.constantFrom('\n', ' -- c; d\n', '\n/* ; */'),
        (list, between) => {
          const found = statementsOf(list.map((statement) => `${statement};`).join(between))
          expect(found.map((text) => text.replace(/^(-- c; d|\/\* ; \*\/)\s*/, ''))).toEqual(list)
        },
      ),
    )
  })

  test.each(['', ' \n', ';;', '-- only; this', '/* ; */;'])('%j has none', (text) => {
    expect(statementsOf(text)).toEqual([])
  })

  test.each(["SELECT 'a", 'SELECT "a', 'SELECT $a$ b $b$', '/* /* */'])('%j is refused', (text) => {
    expect(() => statementsOf(text)).toThrow(/never closed/)
  })
})

describe('the schema', () => {
  test('is put in everywhere but in texts and comments', () => {
    const sql = `-- :"schema"\nCREATE FUNCTION :"schema".f() RETURNS int SET search_path = :"schema", pg_temp AS $$ SELECT :"schema".g() /* :"schema" */ $$; SELECT a::"schema"`
    expect(bindSchema(sql, 'a"b')).toBe(
      `-- :"schema"\nCREATE FUNCTION "a""b".f() RETURNS int SET search_path = "a""b", pg_temp AS $$ SELECT "a""b".g() /* :"schema" */ $$; SELECT a::"schema"`,
    )
  })

  test.each(['$$', '$body1$', "'; --", '\\', '"', '$&', ':"schema"'])(
    'may be called %s',
    (name) => {
      const sql = 'CREATE FUNCTION :"schema".f() AS $$ SELECT :"schema".g(); $$; SELECT 1;'
      const bound = statementsOf(bindSchema(sql, name))
      const id = `"${name.replaceAll('"', '""')}"`
      expect(bound).toHaveLength(2)
      expect(bound[0]?.startsWith(`CREATE FUNCTION ${id}.f() AS $`)).toBe(true)
      expect(bound[0]).toContain(` SELECT ${id}.g(); `)
    },
  )

  test.each([`SELECT 'a :"schema" b'`, `SELECT $$ EXECUTE ':"schema"' $$`, `SELECT ":"schema""`])(
    'cannot stand inside of a text: %s',
    (sql) => {
      if (sql.includes('SELECT "')) expect(bindSchema(sql, 'a')).toBe(sql)
      else expect(() => bindSchema(sql, 'a')).toThrow(SyntaxError)
    },
  )
})

test('functions and views of a file are found by name', () => {
  expect(
    objectsIn(`
      -- CREATE FUNCTION :"schema".not_this()
      CREATE OR REPLACE FUNCTION :"schema".Move(a int) AS $$ SELECT 'CREATE VIEW x' $$;
      create view :"schema" . "Odd "" name" AS SELECT 1;
      CREATE TABLE :"schema".t ();`),
  ).toEqual([
    { kind: 'function', name: 'move' },
    { kind: 'view', name: 'Odd " name' },
  ])
})
