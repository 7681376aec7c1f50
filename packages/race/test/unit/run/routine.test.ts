import { beforeAll, expect, test } from 'vitest'
import { bodyOf, bodyOfPlPgSql } from '../../../src/run/statement/routine.ts'
import { loadParser } from '../../../src/run/statement/statement-tree.ts'

beforeAll(loadParser)

const inside = (body: string, declare = ''): readonly (string | undefined)[] =>
  bodyOfPlPgSql(
    `CREATE FUNCTION f(p int) RETURNS SETOF int LANGUAGE plpgsql AS $body$ ${declare} BEGIN ${body} END $body$`,
  ).statements.map((text) => text?.trim())

test.each([
  ['PERFORM n FROM a;', ['SELECT n FROM a']],
  ['UPDATE a SET n = p;', ['UPDATE a SET n = p']],
  [
    'IF EXISTS (SELECT FROM a) THEN DELETE FROM b; ELSE DELETE FROM c; END IF;',
    ['SELECT EXISTS (SELECT FROM a)', 'DELETE FROM b', 'DELETE FROM c'],
  ],
  ['p := (SELECT n FROM a);', ['SELECT  (SELECT n FROM a)']],
  ['RETURN QUERY SELECT n FROM a;', ['SELECT n FROM a']],
  ['CALL q(1);', ['CALL q(1)']],
  [
    'BEGIN DELETE FROM a; EXCEPTION WHEN others THEN DELETE FROM b; END;',
    ['DELETE FROM a', 'DELETE FROM b'],
  ],
])('%s', (body, expected) => {
  expect(inside(body)).toEqual(expected)
})

test('what a loop runs, it runs again', () => {
  expect(inside('FOR i IN 1..2 LOOP DELETE FROM a; END LOOP;')).toEqual(
    expect.arrayContaining(['SELECT 1', 'SELECT 2', 'DELETE FROM a', 'DELETE FROM a']),
  )
})

test('a statement that is made at run time is not known', () => {
  expect(inside(`EXECUTE 'DELETE FROM a';`)).toContain(undefined)
  expect(inside(`RETURN QUERY EXECUTE 'SELECT 1';`)).toContain(undefined)
})

test('defaults and cursors are read', () => {
  const texts = inside('NULL;', 'DECLARE v int := (SELECT n FROM a); c CURSOR FOR SELECT n FROM b;')
  expect(texts).toEqual(expect.arrayContaining(['SELECT (SELECT n FROM a)', 'SELECT n FROM b']))
})

test('a function of SQL, and one of another language', () => {
  const unknown = [undefined, undefined]
  const sql = { language: 'sql', body: 'DELETE FROM a; SELECT 1' }
  expect(bodyOf(sql)).toEqual({ statements: ['DELETE FROM a', 'SELECT 1'], catches: false })
  expect(bodyOf({ language: 'sql', body: null })).toEqual({ statements: unknown, catches: false })
  expect(bodyOf({ language: 'plv8', body: 'plv8.execute("")' })).toEqual({
    statements: unknown,
    catches: true,
  })
  expect(bodyOfPlPgSql('DO $$ this is none $$')).toEqual({ statements: unknown, catches: true })
})

test('a block that goes on after an error is known', () => {
  const block = (body: string): boolean => bodyOfPlPgSql(`DO $$ BEGIN ${body} END $$`).catches
  expect(block('DELETE FROM a;')).toBe(false)
  expect(block('BEGIN DELETE FROM a; EXCEPTION WHEN others THEN NULL; END;')).toBe(true)
})
