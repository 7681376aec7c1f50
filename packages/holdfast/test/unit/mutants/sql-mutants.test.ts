import { describe, expect, test } from 'vitest'
import { changed } from '../../../../../scripts/mutants/sql/change.ts'
import { testsOf } from '../../../../../scripts/mutants/sql/covering-tests.ts'
import { knownAs } from '../../../../../scripts/mutants/sql/known.ts'
import { mutantsOf, sampled } from '../../../../../scripts/mutants/sql/mutants-of.ts'

/** What becomes of a body, by the kind of change. */
function changesIn(body: string, kind: string): string[] {
  const [head, foot] = ['CREATE FUNCTION f(a int DEFAULT 1) SET x = off AS $$ ', ' $$;']
  const text = `${head}${body}${foot}`
  return mutantsOf('app/f.sql', text)
    .filter((mutant) => mutant.kind === kind)
    .map((mutant) => changed(text, mutant))
    .map((each) => {
      expect(each.startsWith(head) && each.endsWith(foot)).toBe(true)
      return each.slice(head.length, -foot.length)
    })
}

describe('conditions', () => {
  test.each([
    [
      'a lone one of WHERE is left out',
      'SELECT FROM t WHERE a = 1 LIMIT 1',
      ['SELECT FROM t WHERE true LIMIT 1'],
    ],
    [
      'one of AND counts as true, one of OR as false',
      'x := a > 1 AND b > 2;',
      ['x := true AND b > 2;', 'x := a > 1 AND true;'],
    ],
    [
      'of OR',
      'IF (a = 1 OR b = 2) THEN',
      ['IF NOT ((a = 1 OR b = 2)) THEN', 'IF (false OR b = 2) THEN', 'IF (a = 1 OR false) THEN'],
    ],
    ['what compares nothing is turned around', 'IF found THEN', ['IF NOT (found) THEN']],
    ['and without its NOT', 'EXIT WHEN NOT found;', ['EXIT WHEN found;']],
    [
      'the AND of BETWEEN connects nothing',
      'SELECT WHERE a BETWEEN 1 AND 2 AND b = 3',
      [
        'SELECT WHERE true AND b = 3',
        'SELECT WHERE NOT (a BETWEEN 1 AND 2) AND b = 3',
        'SELECT WHERE a BETWEEN 1 AND 2 AND true',
      ],
    ],
    [
      'CASE is one value',
      'RETURN CASE WHEN a = 1 THEN b END AND c > 0;',
      [
        'RETURN true AND c > 0;',
        'RETURN NOT (CASE WHEN a = 1 THEN b END) AND c > 0;',
        'RETURN CASE WHEN a = 1 THEN b END AND true;',
      ],
    ],
    [
      'of ON and of ON CONFLICT',
      'JOIN t ON a = b LEFT JOIN u ON true ON CONFLICT DO NOTHING',
      ['JOIN t ON true LEFT JOIN u ON true ON CONFLICT DO NOTHING'],
    ],
    [
      'IS DISTINCT FROM does not end it',
      'IF a IS DISTINCT FROM b THEN',
      ['IF NOT (a IS DISTINCT FROM b) THEN'],
    ],
  ])('%s', (_, body, expected) => {
    expect(changesIn(body, 'condition')).toEqual(expected)
  })
})

describe('the other kinds', () => {
  test.each([
    ['comparison', 'a < b', ['a <= b']],
    ['comparison', 'a >= b', ['a > b']],
    ['comparison', 'a <> b', ['a = b']],
    [
      'comparison',
      'UPDATE t SET a = 1, b = (c = 2) WHERE d <= 3',
      [
        'UPDATE t SET a = 1, b = (c <> 2) WHERE d <= 3',
        'UPDATE t SET a = 1, b = (c = 2) WHERE d < 3',
      ],
    ],
    [
      'order',
      'SELECT FROM t ORDER BY a, b DESC LIMIT 1',
      ['SELECT FROM t  LIMIT 1', 'SELECT FROM t ORDER BY a DESC, b LIMIT 1'],
    ],
    ['order', 'f(x ORDER BY y) AS z', ['f(x ) AS z', 'f(x ORDER BY y DESC) AS z']],
    ['lock', 'SELECT FROM t FOR NO KEY UPDATE OF t;', ['SELECT FROM t ;']],
    [
      'lock',
      'SELECT FROM t FOR UPDATE SKIP LOCKED;',
      ['SELECT FROM t ;', 'SELECT FROM t FOR UPDATE ;'],
    ],
    ['lock', 'SELECT FROM t FOR SHARE;', ['SELECT FROM t ;']],
    ['lock', 'PERFORM pg_advisory_xact_lock(f(1));', ['NULL;']],
    ['lock', 'FOR update_of IN 1..2 LOOP', []],
    ['bound', 'least(a, b)', ['greatest(a, b)']],
    ['bound', 'greatest(a, b)', ['least(a, b)']],
    ['bound', 'a + b - (-c)', ['a - b - (-c)', 'a + b + (-c)']],
    [
      'constant',
      'a BETWEEN 0 AND 9007199254740991',
      ['a BETWEEN 1 AND 9007199254740991', 'a BETWEEN 0 AND 9007199254740992'],
    ],
    ['conflict', 'INSERT INTO t ON CONFLICT (a) DO NOTHING;', ['INSERT INTO t ;']],
    [
      'conflict',
      'INSERT INTO t ON CONFLICT (a) DO UPDATE SET b = 1 RETURNING c',
      ['INSERT INTO t ON CONFLICT (a) DO NOTHING RETURNING c'],
    ],
  ])('%s: %s', (kind, body, expected) => {
    expect(changesIn(body, kind)).toEqual(expected)
  })

  test('of a migration, only what is unique and what is checked', () => {
    const text = [
      'CREATE TABLE t (a int PRIMARY KEY, b int DEFAULT 1, CHECK (b > 0), PRIMARY KEY (a, b));',
      'CREATE UNIQUE INDEX i ON t (b) WHERE b > 0;',
    ].join('\n')
    const found = mutantsOf('migrations/1.sql', text).map(
      ({ kind, line, original, replacement }) => [kind, line, original, replacement],
    )
    expect(found).toEqual([
      ['constraint', 1, 'PRIMARY KEY', 'CHECK (true)'],
      ['constraint', 1, 'CHECK (b > 0)', 'CHECK (true)'],
      ['comparison', 1, '>', '>='],
      ['constant', 1, '0', '1'],
      ['constraint', 1, 'PRIMARY KEY (a, b)', 'CHECK (true)'],
      ['constraint', 2, 'UNIQUE', ''],
    ])
  })
})

test('comments and strings are left alone', () => {
  const body =
    "-- WHERE a < 1 ORDER BY b FOR UPDATE\nRETURN 'a < 1 AND b = 2' || $t$ c > 3 $t$; /* d - 1 */"
  expect(mutantsOf('app/f.sql', `CREATE FUNCTION f() AS $$${body}$$`)).toEqual([])
})

test('a part of them is the same each time, and another one with another seed', () => {
  const body = Array.from({ length: 200 }, (_, at) => `x := y < z${at};`).join('\n')
  const all = mutantsOf('app/f.sql', `AS $$${body}$$`)
  const some = sampled(all, 25, 1)
  expect(some.length).toBeGreaterThan(25)
  expect(some.length).toBeLessThan(75)
  expect(sampled(all, 25, 1)).toEqual(some)
  expect(sampled(all, 25, 2)).not.toEqual(some)
  expect(sampled(all, 100, 1)).toHaveLength(all.length)
})

test('a known one is known by its text and by what is around it', () => {
  const text = 'AS $$ IF a <= moment AND b <= c THEN $$'
  const mutants = mutantsOf('app/f.sql', text).filter(({ kind }) => kind === 'comparison')
  const entry = {
    file: '/./',
    original: '<=',
    replacement: '/^<$/',
    before: 'moment',
    reason: 'why',
  }
  expect(mutants.map((mutant) => knownAs(mutant, text, [entry])?.reason)).toEqual([
    'why',
    undefined,
  ])
  const other = { ...entry, before: 'c', after: 'AND b', file: 'app/f.sql' }
  expect(mutants.map((mutant) => knownAs(mutant, text, [other])?.reason)).toEqual([
    undefined,
    'why',
  ])
})

test('every SQL file has tests, in order', () => {
  expect(testsOf('app/apply.sql')[0]).toBe(
    'packages/holdfast/test/integration/ledger/model.test.ts',
  )
  expect(testsOf('app/acquire_lease.sql')[0]).toMatch(/leases\/lease\.test\.ts$/)
})
