import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { controlIn } from '../../../src/engines/postgres/tx/transaction-control.ts'

describe('what a text does to its transaction', () => {
  test.each([
    ['BEGIN', 'begin'],
    ['begin isolation level serializable', 'begin'],
    ['START TRANSACTION', 'begin'],
    ['start /* a */ transaction', 'begin'],
    ['COMMIT', 'end'],
    ['commit work', 'end'],
    ['COMMIT AND CHAIN', 'end'],
    ['END', 'end'],
    ['end transaction', 'end'],
    ['ROLLBACK', 'end'],
    ['ROLLBACK AND CHAIN', 'end'],
    ['ROLLBACK WORK AND NO CHAIN', 'end'],
    ['ABORT', 'end'],
    ["PREPARE TRANSACTION 'x'", 'end'],
    ['  \n -- note\n /* a /* nested */ b */ RollBack ;', 'end'],
    ['SELECT 1; COMMIT', 'end'],
    ['ROLLBACK; BEGIN', 'end'],
    ['BEGIN; SELECT 1; END', 'end'],
    ["SELECT 'it''s'; COMMIT", 'end'],
    ["SELECT E'\\''; COMMIT", 'end'],
    // With standard_conforming_strings off the quote ends later, and COMMIT is a statement.
    ["SELECT '\\'; SELECT '; COMMIT --'", 'end'],
    ["SELECT '\\'' ; COMMIT -- '", 'end'],
    ['SELECT $$a$$; COMMIT', 'end'],
    ['SELECT "a""b"; COMMIT', 'end'],
    ['SELECT CASE WHEN true THEN 1 END; COMMIT', 'end'],
    ['-- done\rCOMMIT', 'end'],
    ["SELECT E'a'\n'\\'', '\\'; ROLLBACK AND CHAIN; SELECT ' '", 'end'],
    ["SELECT E'a' -- note\n  '\\'' ; COMMIT -- '", 'end'],
    ['CREATE TEMP VIEW v AS SELECT x.begin atomic FROM (SELECT 1 AS begin) AS x; ROLLBACK', 'end'],
    ['SELECT 1 AS case; COMMIT', 'end'],
    ['SELECT begin atomic FROM (SELECT 1 AS begin) AS x; COMMIT', 'end'],
    ['SELECT 1 AS x$y$z; ROLLBACK; SELECT 2 AS x$y$z', 'end'],
    ['CREATE FUNCTION begin(atomic int) RETURNS int LANGUAGE sql RETURN 1; ROLLBACK', 'end'],
    ['CREATE FUNCTION f(begin atomic) RETURNS int LANGUAGE sql RETURN 1; END', 'end'],
    ['CREATE PROCEDURE f() LANGUAGE sql BEGIN ATOMIC END; END', 'end'],
    ['CREATE PROCEDURE f() LANGUAGE sql BEGIN ATOMIC SELECT 1; END; END', 'end'],
    ['CREATE PROCEDURE f() LANGUAGE sql BEGIN ATOMIC SELECT 1; END; START TRANSACTION', 'begin'],
  ] as const)('%s', (text, control) => {
    expect(controlIn(text)).toBe(control)
  })

  test.each([
    ['SELECT 1'],
    ['SAVEPOINT a'],
    ['ROLLBACK TO a'],
    ['ROLLBACK TO SAVEPOINT a'],
    ['rollback work to savepoint a'],
    ['ROLLBACK TRANSACTION TO a'],
    ['RELEASE SAVEPOINT a'],
    ['PREPARE p AS SELECT 1'],
    ["COMMIT PREPARED 'x'"],
    ["ROLLBACK PREPARED 'x'"],
    ['SELECT CASE WHEN true THEN 1 ELSE 2 END'],
    ["INSERT INTO commit VALUES ('; COMMIT;')"],
    ['SELECT $$; COMMIT; $$'],
    ['SELECT $a$; COMMIT; $$; $a$'],
    ['SELECT "; COMMIT"'],
    ['SELECT 1 -- ; COMMIT'],
    ['SELECT 1 /* ; COMMIT */'],
    ['DO $$ BEGIN PERFORM 1; END $$'],
    [
      'CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END',
    ],
    ['CREATE OR REPLACE PROCEDURE p() LANGUAGE sql BEGIN ATOMIC SELECT 1; END;'],
    ['CREATE PROCEDURE p() LANGUAGE sql BEGIN ATOMIC END'],
    ['CREATE PROCEDURE p() LANGUAGE sql BEGIN /* a */ ATOMIC SELECT 1; /* b */ END; SELECT 1'],
    ["DECLARE c CURSOR FOR SELECT 'start'"],
    ['UPDATE t SET "end" = 1, begin = 2'],
  ])('%s: nothing', (text) => {
    expect(controlIn(text)).toBeUndefined()
  })

  const hidden = fc.oneof(
    fc
      .string({ maxLength: 12 })
      .map((text) => `'${text.replaceAll("'", "''").replaceAll('\\', '')}'`),
    fc.string({ maxLength: 12 }).map((text) => `"${text.replaceAll('"', '""')}"`),
    fc.string({ maxLength: 12 }).map((text) => `$q$${text.replaceAll('$', '')}$q$`),
    fc.string({ maxLength: 12 }).map((text) => `/*${text.replaceAll(/[*/]/g, '')}*/`),
    fc.string({ maxLength: 12 }).map((text) => `--${text.replaceAll('\n', '')}\n`),
  )
  const ending = fc.constantFrom('COMMIT', 'rollback', 'End', 'ABORT', 'rollback and chain')

  test('an end is found behind whatever comes before it', () => {
    fc.assert(
      fc.property(fc.array(hidden, { maxLength: 4 }), ending, (before, word) => {
        expect(controlIn(`SELECT 1 ${before.join(' ')} ; ${word}`)).toBe('end')
      }),
    )
  })

  const name = fc.constantFrom(
    'x',
    'case',
    'end',
    'begin',
    'atomic',
    'commit',
    '"x"',
    '"end"',
    '"case"',
    '"a;b"',
  )
  const expression = fc.constantFrom(
    '1',
    'x.case',
    'x."end"',
    'CASE WHEN true THEN 1 END',
    "'; END;'",
    '(SELECT 1)',
    'x.end',
  )
  const body = fc
    .array(fc.tuple(expression, name), { minLength: 1, maxLength: 3 })
    .map((selects) => selects.map(([value, as]) => `SELECT ${value} AS ${as};`).join(' '))
  const made = fc.constantFrom('CREATE FUNCTION f()', 'create or replace procedure p(begin int)')

  test('an end is found behind the body of a function, whatever names it has, and its own is none', () => {
    fc.assert(
      fc.property(made, body, ending, (create, statements, word) => {
        const routine = `${create} LANGUAGE sql BEGIN ATOMIC ${statements} END`
        expect(controlIn(routine)).toBeUndefined()
        expect(controlIn(`${routine}; ${word}`)).toBe('end')
        expect(controlIn(`${routine}; ${routine}; SELECT 1; ${word}; BEGIN`)).toBe('end')
      }),
    )
  })

  test('an end inside of quotes or comments is none', () => {
    fc.assert(
      fc.property(hidden, ending, (quoted, word) => {
        const [open, close] = [quoted.slice(0, -1), quoted.slice(-1)]
        const inside = quoted.startsWith('/*')
          ? `/*${word}*/`
          : quoted.startsWith('$')
            ? `$q$; ${word}; $q$`
            : `${open}; ${word}; ${close}`
        expect(controlIn(`SELECT 1 ${inside}`)).toBeUndefined()
      }),
    )
  })
})
