/**
 * Every SQL text of ours means the same whatever the other users of a database have made: each name in it carries its
 * schema, or it runs while search_path is ours. PostgreSQL's own parser reads them.
 */
import fc from 'fast-check'
import { loadModule, scanSync } from 'libpg-query'
import { beforeAll, describe, expect, test } from 'vitest'
import { bindSchema, statementsOf } from '../../../src/engines/postgres/schema/script.ts'
import { ownFiles, type SchemaFile } from '../../../src/schema/schema-files.ts'
import { schema } from './caller-statements.ts'
import { ownTexts, type SampleText } from './statements.ts'
import { unpinned, unqualified } from './unqualified.ts'

let texts: readonly SampleText[]
let unknown: readonly string[]

beforeAll(async () => {
  await loadModule()
  ;({ texts, unknown } = await ownTexts())
})

const files = ownFiles()
const statementsIn = ({ text }: SchemaFile): string[] => statementsOf(bindSchema(text, schema))

/** A text without one of the schemas that it names, chosen by a number; nothing if it names none. */
function withoutOne(text: string, choice: number): string | undefined {
  const { tokens } = scanSync(text)
  const named = tokens.flatMap((token, at) => {
    if (!/^"?(?:pg_catalog|holdfast)"?$/.test(token.text) || tokens[at + 1]?.text !== '.') return []
    const isOperator = tokens[at - 2]?.text.toUpperCase() === 'OPERATOR'
    // From OPERATOR up to its closing parenthesis, or from the schema up to its dot.
    const [first, last] = isOperator ? [at - 2, at + 3] : [at, at + 1]
    const kept = isOperator ? tokens[at + 2]?.text : ''
    return [text.slice(0, tokens[first]?.start) + kept + text.slice(tokens[last]?.end)]
  })
  return named[choice % named.length]
}

describe('S1, S21: statements mean what they say', () => {
  test('of every export of the engine somebody has said what statements it makes', () => {
    expect(unknown).toEqual([])
    expect(texts.length).toBeGreaterThan(500)
  })

  test('in every statement each function, operator, type and table carries its schema', () => {
    const found = texts.flatMap(({ of, text }) =>
      unqualified(text).map((finding) => `${of}: ${finding}`),
    )
    expect([...new Set(found)]).toEqual([])
  })

  test('every function sets search_path for itself, or names a schema with everything in it', () => {
    const installed = [...files.migrations, ...files.repeatables]
    const found = installed.flatMap((file) =>
      statementsIn(file).flatMap((text) =>
        unpinned(text).map((finding) => `${file.name}: ${finding}`),
      ),
    )
    expect(found).toEqual([])
    expect(installed.length).toBeGreaterThan(100)
  })

  test('what is built outside of a transaction, where nothing is set, names schemas too', () => {
    const built = (files.online ?? []).flatMap(statementsIn)
    expect(built.length).toBeGreaterThan(0)
    expect(built.flatMap(unqualified)).toEqual([])
  })

  test('one schema left out anywhere is found, in 50 of 50 statements', () => {
    const given = process.env['HOLDFAST_SEED'] ?? '16'
    const seed = given === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(given)
    const naming = texts.filter(({ text }) => withoutOne(text, 0) !== undefined)
    const anyFifty = fc.shuffledSubarray(naming, { minLength: 50, maxLength: 50 })
    const [some = []] = fc.sample(anyFifty, { seed, numRuns: 1 })
    const choices = fc.sample(fc.nat(), { seed, numRuns: 50 })
    const missed = some.filter(
      ({ text }, at) => unqualified(withoutOne(text, choices[at] as number) as string).length === 0,
    )
    expect({ seed, missed }).toEqual({ seed, missed: [] })
    expect(some).toHaveLength(50)
  })
})

describe('the check goes red', () => {
  test.each([
    ['an operator', 'SELECT 1 + 2'],
    ['an operator with ANY', "SELECT 1 = ANY ('{1}')"],
    ['a function', 'SELECT now()'],
    ['a type', "SELECT '1'::text"],
    ['a type that only newer parsers know', "SELECT '1'::json"],
    ['a table', 'SELECT FROM pg_class'],
    ['a table that is written to', 'INSERT INTO a DEFAULT VALUES'],
    ['a table that is emptied', 'DELETE FROM a'],
    ['IN', 'SELECT 1 IN (1, 2)'],
    ['IN with a query', 'SELECT 1 IN (SELECT 1)'],
    ['LIKE', "SELECT 'a' LIKE 'b'"],
    ['BETWEEN', 'SELECT 1 BETWEEN 1 AND 2'],
    ['IS DISTINCT FROM', 'SELECT 1 IS DISTINCT FROM 2'],
    ['nullif', 'SELECT nullif(1, 2)'],
    ['CASE with a value', 'SELECT CASE 1 WHEN 1 THEN 2 END'],
    ['a collation', `SELECT 'a' COLLATE "C"`],
    ['JOIN USING', 'SELECT FROM a.b JOIN a.c USING (d)'],
    ['a backslash', String.raw`SELECT 'a\d'`],
    ['a block', 'DO $$ BEGIN PERFORM 1 + 2; END $$'],
    ['a variable of a block', 'DO $$ DECLARE a text; BEGIN END $$'],
  ])('%s', (_, text) => {
    expect(unqualified(text)).not.toEqual([])
  })

  test('and stays green where the grammar itself decides', () => {
    const text = `SELECT coalesce(1, 2), greatest(1, 2), '1'::integer, interval '1 s', a.b::bit(8), CURRENT_USER,
      extract(epoch FROM pg_catalog.now()), a.b AT TIME ZONE 'UTC', (ARRAY[1])[1], E'\\\\', 1 OPERATOR(pg_catalog.+) -1
      FROM app.a WHERE EXISTS (SELECT) AND a.b IS NULL ORDER BY 1`
    expect(unqualified(text)).toEqual([])
  })

  test('of functions', () => {
    const body = (options: string, text: string): string =>
      `CREATE FUNCTION holdfast.f() RETURNS integer ${options} AS $$ ${text} $$`
    const pinned = 'SET search_path = holdfast, pg_temp'
    expect(unpinned(body('LANGUAGE sql', 'SELECT 1 + 2'))).not.toEqual([])
    expect(unpinned(body(`LANGUAGE sql ${pinned}`, 'SELECT 1 + 2'))).toEqual([])
    const path = 'LANGUAGE sql SET search_path = holdfast'
    expect(unpinned(body(path, 'SELECT 1 + 2'))).not.toEqual([])
    const procedure = 'BEGIN RETURN 1 + 2; END'
    expect(unpinned(body('LANGUAGE plpgsql', procedure))).not.toEqual([])
    expect(unpinned(body(`LANGUAGE plpgsql ${pinned}`, procedure))).toEqual([])
    const backslash = String.raw`SELECT length('\d')`
    expect(unpinned(body(`LANGUAGE sql ${pinned}`, backslash))).not.toEqual([])
  })
})
