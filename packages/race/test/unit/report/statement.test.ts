import { expect, test } from 'vitest'
import { clauseText, flatten, shorten } from '../../../src/report/sql/shorten.ts'
import { readStatement } from '../../../src/report/sql/statement.ts'

const prismaCount =
  'SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."seats"."id" FROM "public"."seats" WHERE "public"."seats"."event_id" = $1 OFFSET $2) AS "sub"'

test.each([
  ['select  *\n from seats -- all', [], 'SELECT * FROM seats'],
  ['SELECT * /* a */ FROM "public"."seats"', [], 'SELECT * FROM seats'],
  [
    'select "seats"."id" from "seats" where "seats"."id" = $1',
    ['7'],
    'SELECT id FROM seats WHERE id = 7',
  ],
  ['SELECT a.id FROM a JOIN b ON a.id = b.id', [], 'SELECT a.id FROM a JOIN b ON a.id = b.id'],
  [
    'UPDATE "stock" SET "qty" = $1 WHERE ("stock"."sku" = $2 AND 1=1)',
    ['4', "O'Hara"],
    "UPDATE stock SET qty = 4 WHERE sku = 'O''Hara'",
  ],
  ["INSERT INTO t VALUES ('a -- b; c', $1)", [null], "INSERT INTO t VALUES ('a -- b; c', NULL)"],
  ['SELECT $$ from x $$', [], 'SELECT $$ from x $$'],
  ['SELECT * FROM "Odd Name" WHERE "Camel" = 1', [], 'SELECT * FROM "Odd Name" WHERE Camel = 1'],
  [
    'SELECT * FROM t WHERE id = $1',
    ['0188aabb-1234-4d2a-8888-aaaaaaaaaaaa'],
    "SELECT * FROM t WHERE id = '0188aabb…'",
  ],
  ["SELECT 'never closed", [], "SELECT 'never closed"],
  ['', [], ''],
])('a statement on one line: %s', (sql, parameters, line) => {
  expect(flatten(sql, parameters)).toBe(line)
})

test.each([
  [60, 'SELECT count(*) FROM (… seats WHERE event_id = 1 …)'],
  [
    100,
    'SELECT COUNT(*) AS _count$_all FROM (SELECT id FROM seats WHERE event_id = 1 OFFSET 0) AS sub',
  ],
])('an ORM’s count in %i characters', (width, line) => {
  expect(shorten(prismaCount, ['1', '0'], width)).toBe(line)
})

test.each([
  [
    'INSERT INTO seats (event_id, who) VALUES (1, 2) RETURNING id, event_id',
    50,
    'INSERT INTO seats (event_id, who) VALUES (1, 2)',
  ],
  [
    'INSERT INTO seats (event_id, who) VALUES (1, 2) RETURNING id',
    36,
    'INSERT INTO seats VALUES (1, 2)',
  ],
  [
    'SELECT id, sku, qty, price FROM stock WHERE sku = 7 FOR UPDATE',
    54,
    'SELECT id, … FROM stock WHERE sku = 7 FOR UPDATE',
  ],
  ['SELECT pg_advisory_xact_lock(hashtext(1))', 24, 'SELECT pg_advisory_xact…'],
])('%s in %i characters', (sql, width, line) => {
  expect(shorten(sql, [], width)).toBe(line)
  expect(line.length).toBeLessThanOrEqual(width)
})

test('what a statement is about', () => {
  expect(readStatement(prismaCount, ['1', '0'])).toMatchObject({
    verb: 'SELECT',
    table: 'seats',
    aggregate: 'count',
    where: [{ column: 'event_id', value: '1' }],
  })
  const claim = readStatement(
    "UPDATE jobs SET status = 'running', tries = tries + 1 WHERE id = (SELECT id FROM jobs WHERE status = 'pending' LIMIT 1 FOR UPDATE SKIP LOCKED)",
  )
  expect(claim).toMatchObject({
    verb: 'UPDATE',
    table: 'jobs',
    sets: [{ column: 'status', value: "'running'" }],
    locking: 'FOR UPDATE SKIP LOCKED',
    skipsLocked: true,
    limited: true,
  })
  expect(readStatement('INSERT INTO s (a, b) VALUES ($1, now())', ['x']).sets).toEqual([
    { column: 'a', value: "'x'" },
  ])
  const upsert = 'INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2 RETURNING a'
  expect(readStatement(upsert).clauses.map(({ name }) => name)).toEqual([
    'INSERT',
    'VALUES',
    'ON',
    'RETURNING',
  ])
  const cte =
    'WITH moved AS (DELETE FROM a WHERE id = 1 RETURNING *) INSERT INTO b SELECT * FROM moved'
  expect(readStatement(cte)).toMatchObject({ verb: 'INSERT', table: 'b', tables: ['a', 'b'] })
})

test('what may be copied keeps the quotes that it needs', () => {
  const statement = readStatement(
    'UPDATE "My App"."Order Items" SET "qty" = 4 WHERE "order" = 1 AND "userId" = 2 AND "pos" = 3',
  )
  expect(clauseText(statement, 'WHERE')).toBe('"order" = 1 AND "userId" = 2 AND pos = 3')
  expect(clauseText(statement, 'SET')).toBe('qty = 4')
})
