import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { controlIn } from '../../../../src/engines/sqlite/tx/transaction-control.ts'

const parts = [
  'COMMIT',
  'end',
  'END TRANSACTION',
  'ROLLBACK',
  'rollback transaction',
  'ROLLBACK TO s',
  'ROLLBACK TRANSACTION TO s',
  'BEGIN',
  'BEGIN DEFERRED TRANSACTION',
  'SELECT 1',
  "SELECT 'it''s; COMMIT'",
  'SELECT "a;b" AS "COMMIT"',
  'SELECT 1 AS [x;',
  'SELECT 1 AS `a``;`',
  'SAVEPOINT s',
  'RELEASE s',
  'CREATE TABLE IF NOT EXISTS t (id)',
  'CREATE TRIGGER IF NOT EXISTS g AFTER INSERT ON t BEGIN SELECT CASE WHEN 1 THEN 2 END',
  'CREATE TEMP TRIGGER h AFTER INSERT ON t BEGIN INSERT INTO t VALUES (1)',
  'EXPLAIN COMMIT',
  'EXPLAIN QUERY PLAN SELECT 1',
  ';',
  '; ',
  ';\n',
  ' ',
  '-- note;\n',
  '--',
  '\n',
  '/*',
  '*/',
  '/* ; */',
  "'",
  '"',
  '`',
  '[',
  ']',
  'x',
  ':commit',
  '\uFEFF',
] as const

function textsOf(seed: number, count: number): readonly string[] {
  let state = seed
  const below = (most: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff
    return (state >>> 8) % most
  }
  return Array.from({ length: count }, () =>
    Array.from({ length: 1 + below(7) }, () => parts[below(parts.length)]).join(
      below(2) ? ';' : ' ',
    ),
  )
}

/** What SQLite itself makes of a text: whether the transaction is still the one that was begun. */
function ends(db: DatabaseSync, text: string): boolean {
  db.exec('DELETE FROM mark; BEGIN; INSERT INTO mark VALUES (1)')
  try {
    db.exec(text)
  } catch {
    // What was run of it has been run.
  }
  // Not in one any more; or in another one, behind which the first was saved.
  if (!db.isTransaction) return true
  db.exec('ROLLBACK')
  return db.prepare('SELECT * FROM mark').all().length > 0
}

const count = process.env['HOLDFAST_ENGINES'] === 'all' ? 100_000 : 5_000

test('no text that ends a transaction is taken for one that does not', () => {
  using db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE mark (id)')
  const missed: string[] = []
  let [ended, refused] = [0, 0]
  for (const text of textsOf(7, count)) {
    const isEnd = ends(db, text)
    if (isEnd) ended += 1
    if (controlIn(text) !== undefined) refused += isEnd ? 0 : 1
    else if (isEnd) missed.push(text)
  }
  expect(missed).toEqual([])
  // It was about something, and not everything is refused.
  expect(ended).toBeGreaterThan(count / 20)
  expect(refused).toBeLessThan(count / 2)
})
