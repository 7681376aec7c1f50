import { beforeAll, describe, expect, test } from 'vitest'
import {
  type StatementShape,
  shapeOf,
  type TableName,
} from '../../../src/run/statement/statement-shape.ts'
import { loadParser } from '../../../src/run/statement/statement-tree.ts'

beforeAll(() => loadParser())

test.each([
  ['BEGIN', 'begin'],
  ['START TRANSACTION READ ONLY', 'begin'],
  ['END', 'commit'],
  ['ABORT', 'rollback'],
  ['ROLLBACK TO SAVEPOINT s', 'rollback-to'],
  // The next transaction is open at once.
  ['COMMIT AND CHAIN', 'unknown'],
  [`PREPARE TRANSACTION 'x'`, 'unknown'],
  ['SAVEPOINT s', 'local'],
  ['SET CONSTRAINTS ALL DEFERRED', 'local'],
  // Makes the checks that were put off.
  ['SET CONSTRAINTS ALL IMMEDIATE', 'unknown'],
  ['(VALUES (1))', 'query'],
  ['TABLE t', 'query'],
  ['WITH x AS (SELECT 1) DELETE FROM t', 'query'],
  ['SELECT 1 INTO t', 'unknown'],
  ['TRUNCATE t', 'lock'],
  ['CREATE TABLE t ()', 'unknown'],
  ['SELECT 1; SELECT 2', 'unknown'],
  ['SELEKT 1', 'unknown'],
  ['-- only a comment', 'unknown'],
  ['', 'unknown'],
] as const)('%s is %s', (text, kind) => {
  expect(shapeOf(text).kind).toBe(kind)
})

test.each([
  ['BEGIN ISOLATION LEVEL SERIALIZABLE', 'serializable', false],
  ['SET TRANSACTION ISOLATION LEVEL REPEATABLE READ', 'repeatable read', false],
  [`SET transaction_isolation = 'serializable'`, 'serializable', false],
  [
    'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED',
    'read committed',
    true,
  ],
  [`SET default_transaction_isolation TO 'SERIALIZABLE'`, 'serializable', true],
  ['BEGIN READ ONLY', undefined, false],
] as const)('%s: level %s, of the session: %s', (text, isolation, forSession) => {
  expect(shapeOf(text)).toMatchObject({ isolation, forSession })
})

test.each([
  ['SET lock_timeout = 1', 'settings'],
  ['SET LOCAL lock_timeout = 1', undefined],
  [`SELECT set_config('a.b', 'c', true)`, undefined],
  [`SELECT set_config('a.b', 'c', $1)`, 'settings'],
  ['CREATE TEMP TABLE t ()', 'settings'],
  ['SELECT pg_advisory_lock(1)', 'locks'],
  ['SELECT pg_advisory_xact_lock(1)', undefined],
  ['LISTEN a', 'settings'],
  ['not SQL', 'settings'],
] as const)('%s leaves %s behind', (text, residue) => {
  expect(shapeOf(text).residue).toBe(residue)
})

describe('tables', () => {
  const written = ({ schema, name }: TableName): string => `${schema ?? ''}.${name}`
  const names = ({ target, reads }: StatementShape): [string | undefined, Set<string>] => [
    target && written(target),
    new Set(reads.map(written)),
  ]

  test.each([
    ['SELECT * FROM a.t x JOIN "T" ON true FOR UPDATE OF x', [undefined, 'a.t', '.T']],
    ['UPDATE t SET a = (SELECT max(a) FROM b.t)', ['.t', 'b.t']],
    ['INSERT INTO a.t SELECT * FROM t', ['a.t', '.t']],
    ['WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d', ['.t', '.d']],
    // Two that write: neither is the one.
    [
      'WITH d AS (DELETE FROM t RETURNING *) INSERT INTO u SELECT * FROM d',
      [undefined, '.u', '.d', '.t'],
    ],
    [`SELECT 'FROM t' -- FROM u`, [undefined]],
  ])('of %s', (text, expected) => {
    const [target, ...reads] = expected
    expect(names(shapeOf(text))).toEqual([target, new Set(reads)])
  })
})

test('columns that are set, also by ON CONFLICT and MERGE', () => {
  const assigned = (text: string): string[] => [...shapeOf(text).assigned].toSorted()
  expect(assigned('UPDATE t SET a = 1, (b, c) = (SELECT 1, 2), d[1] = 3')).toEqual([
    'a',
    'b',
    'c',
    'd',
  ])
  expect(assigned('INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1')).toEqual(['b'])
  const merge = 'MERGE INTO t USING u ON true WHEN MATCHED THEN UPDATE SET a = 1'
  expect(assigned(merge)).toEqual(['a'])
})

describe('columns that a statement fixes', () => {
  const fixed = (text: string): string[] | undefined => {
    const { rows } = shapeOf(text)
    return rows && [...rows.equals.keys()].toSorted()
  }

  test.each([
    ['SELECT * FROM t WHERE a = 1 AND ($1 = t.b AND c > 2)', ['a', 'b']],
    [`DELETE FROM t WHERE a = 'x'::text`, ['a']],
    ['INSERT INTO t (a, b, c) VALUES (1, DEFAULT, now())', ['a']],
    ['SELECT * FROM t WHERE a = 1 OR b = 2', []],
    ['SELECT * FROM t WHERE NOT a = 1', []],
    ['SELECT * FROM t WHERE a = b', []],
    ['SELECT * FROM t WHERE a IN (1)', []],
    ['SELECT * FROM t WHERE a = NULL', []],
    // Cut to three letters.
    ['SELECT * FROM t WHERE a = $1::varchar(3)', []],
    ['SELECT * FROM t WHERE a = $1::numeric', []],
    ['SELECT * FROM t, u WHERE a = 1', undefined],
    ['SELECT * FROM t WHERE a = 1 UNION SELECT * FROM t', undefined],
    ['UPDATE t SET b = 1 FROM u WHERE a = 1', undefined],
    ['DELETE FROM t USING u WHERE a = 1', undefined],
    ['DELETE FROM t WHERE a = 1 RETURNING (SELECT 1)', undefined],
    ['WITH x AS (SELECT 1) DELETE FROM t WHERE a = 1', undefined],
    ['INSERT INTO t (a) VALUES (1), (2)', undefined],
    ['INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING', undefined],
    ['INSERT INTO t (a) OVERRIDING USER VALUE VALUES (1)', undefined],
  ])('%s: %s', (text, expected) => {
    expect(fixed(text)).toEqual(expected)
  })
})
