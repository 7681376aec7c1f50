import { parseSpec, type Spec } from './parse-spec.ts'

/** A generator that gives the same numbers for the same seed, everywhere (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Dice {
  /** A whole number from 1 to `most`. */
  upTo(most: number): number
  one<T>(of: readonly T[]): T
  /** The same table five times out of six, so that the sessions meet. */
  table(): string
  /** Mostly the row that exists, for the same reason. */
  id(): number
}

function dice(seed: number): Dice {
  const next = numbers(seed)
  const upTo = (most: number): number => 1 + Math.floor(next() * most)
  const one = <T>(of: readonly T[]): T => {
    const drawn = of[upTo(of.length) - 1]
    if (drawn === undefined) throw new Error('nothing to draw from')
    return drawn
  }
  const usual = one(['keyed', 'keyed', 'plain'])
  return {
    upTo,
    one,
    table: () => one([usual, usual, usual, usual, 'keyed', 'plain']),
    id: () => one([1, 1, 1, 1, 1, 2, 3]),
  }
}

const setup = `setup
{
  CREATE TABLE IF NOT EXISTS keyed (id int PRIMARY KEY, value int);
  CREATE TABLE IF NOT EXISTS plain (id int, value int);
  CREATE TABLE IF NOT EXISTS child (id int PRIMARY KEY, keyed int REFERENCES keyed ON DELETE CASCADE);
  TRUNCATE keyed, plain, child;
  INSERT INTO keyed VALUES (1, 10), (2, 20);
  INSERT INTO plain VALUES (1, 10), (2, 20);
  INSERT INTO child VALUES (1, 1);
}

teardown
{
  SELECT 'keyed' AS place, id, value FROM keyed
  UNION ALL SELECT 'plain', id, value FROM plain
  UNION ALL SELECT 'child', id, keyed FROM child
  ORDER BY 1, 2, 3;
}
`

type Draw = (roll: Dice) => string

/** Ordered by everything, so that rows compare. */
const reads: readonly Draw[] = [
  (roll) => `SELECT id, value FROM ${roll.table()} ORDER BY id, value;`,
  (roll) => `SELECT value FROM ${roll.table()} WHERE id = ${roll.id()} ORDER BY value;`,
  (roll) => `SELECT count(*) FROM ${roll.table()} WHERE value > ${roll.upTo(3) * 10 - 5};`,
  () => 'SELECT child.id, value FROM child JOIN keyed ON keyed.id = child.keyed ORDER BY 1;',
]

const writes: readonly Draw[] = [
  (roll) =>
    `UPDATE ${roll.table()} SET value = value + ${roll.upTo(9)} WHERE id = ${roll.id()} RETURNING value;`,
  (roll) => `UPDATE ${roll.table()} SET value = value * 2 WHERE value < ${roll.upTo(3) * 10};`,
  (roll) => `UPDATE keyed SET id = ${roll.upTo(4)} WHERE id = ${roll.id()};`,
  (roll) =>
    `UPDATE ${roll.table()} SET value = (SELECT sum(value) FROM ${roll.table()}) WHERE id = ${roll.id()};`,
  (roll) => `DELETE FROM ${roll.table()} WHERE id = ${roll.id()};`,
  (roll) => `DELETE FROM ${roll.table()} WHERE value > ${roll.upTo(3) * 10};`,
  (roll) => `INSERT INTO ${roll.table()} VALUES (${roll.upTo(3)}, ${roll.upTo(90)});`,
  (roll) => `INSERT INTO child VALUES (${roll.upTo(3)}, ${roll.upTo(3)});`,
  (roll) =>
    `INSERT INTO keyed VALUES (${roll.id()}, 5) ON CONFLICT ${roll.one(['DO NOTHING', '(id) DO UPDATE SET value = keyed.value + 1'])} RETURNING value;`,
  (roll) =>
    `INSERT INTO plain SELECT 3, 30 WHERE NOT EXISTS (SELECT FROM ${roll.table()} WHERE id = ${roll.id()});`,
]

const locks: readonly Draw[] = [
  (roll) =>
    `SELECT value FROM ${roll.table()} WHERE id = ${roll.id()} ORDER BY value FOR ${roll.one(['UPDATE', 'NO KEY UPDATE', 'SHARE', 'KEY SHARE'])} ${roll.one(['', '', 'NOWAIT', 'SKIP LOCKED'])};`,
  (roll) => `SELECT pg_advisory_xact_lock(${roll.id()});`,
  (roll) => `SELECT pg_try_advisory_xact_lock(${roll.id()}) AS got;`,
]

const levels = ['READ COMMITTED', 'READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const

interface Draws {
  readonly reads: readonly Draw[]
  readonly writes: readonly Draw[]
  readonly locks: readonly Draw[]
}

const usual: Draws = { reads, writes, locks }

function session(roll: Dice, name: string, kind: number, draws: Draws = usual): string {
  const { reads, writes, locks } = draws
  const drawn = [writes, roll.one([reads, reads, locks, writes]), reads].slice(
    0,
    kind === 2 ? 2 : 3,
  )
  const body = drawn.slice(0, 1 + roll.upTo(2)).map((kinds) => roll.one(kinds)(roll))
  if (roll.upTo(2) === 1) body.reverse()
  const lines = [`session ${name}`]
  if (kind > 1) {
    lines.push(`setup { BEGIN ISOLATION LEVEL ${roll.one(levels)}; }`)
    if (kind === 2) {
      body.splice(1, 0, 'SAVEPOINT here;')
      body.push('ROLLBACK TO here;')
    }
    body.push(roll.upTo(8) === 1 ? 'ROLLBACK;' : 'COMMIT;')
  }
  return [...lines, ...body.map((sql, at) => `step ${name}${at + 1} { ${sql} }`)].join('\n')
}

/**
 * A small spec of two sessions, the same for the same seed. One session in six works without a
 * transaction, one in six goes back to a savepoint.
 */
export function randomSpec(seed: number): Spec {
  const roll = dice(seed)
  const sessions = ['a', 'b'].map((name) => session(roll, name, roll.upTo(6)))
  return parseSpec(`random ${seed}`, [setup, ...sessions].join('\n'))
}

/** The same, but the first session works without a transaction, and one in two second ones. */
export function randomAutocommitSpec(seed: number): Spec {
  const roll = dice(seed)
  const sessions = [session(roll, 'a', 1), session(roll, 'b', roll.one([1, 3]))]
  return parseSpec(`random autocommit ${seed}`, [setup, ...sessions].join('\n'))
}

const rowSetup = `setup
{
  CREATE TABLE IF NOT EXISTS test (id int PRIMARY KEY, code text NOT NULL UNIQUE, value int);
  CREATE TABLE IF NOT EXISTS child (id int PRIMARY KEY, test int REFERENCES test ON DELETE CASCADE, value int);
  TRUNCATE test, child;
  INSERT INTO test VALUES (1, 'a', 10), (2, 'b', 20);
  INSERT INTO child VALUES (1, 1, 0), (2, 2, 0);
}

teardown
{
  SELECT 'test' AS place, id, code, value FROM test
  UNION ALL SELECT 'child', id, test::text, value FROM child
  ORDER BY 1, 2, 3, 4;
}
`

const oneRow: Draw = (roll) =>
  roll.one([
    `id = ${roll.upTo(2)}`,
    `id = ${roll.upTo(2)}`,
    `id = ${roll.upTo(2)} AND value < 90`,
    `code = '${roll.one(['a', 'b'])}'`,
    `value > ${roll.upTo(2) * 10 - 5}`,
  ])

/** Most of them on one row that they name by a key. */
const byRow: Draws = {
  reads: [
    (roll) => `SELECT id, code, value FROM test WHERE ${oneRow(roll)} ORDER BY id;`,
    (roll) => `SELECT value FROM child WHERE id = ${roll.upTo(2)};`,
    () => 'SELECT sum(value) FROM test;',
  ],
  writes: [
    (roll) => `UPDATE test SET value = value + ${roll.upTo(9)} WHERE ${oneRow(roll)};`,
    (roll) => `UPDATE test SET value = value + ${roll.upTo(9)} WHERE ${oneRow(roll)};`,
    (roll) => `UPDATE test SET code = '${roll.one(['b', 'c'])}' WHERE ${oneRow(roll)};`,
    (roll) => `UPDATE test SET id = ${roll.upTo(3)} WHERE ${oneRow(roll)};`,
    (roll) => `DELETE FROM test WHERE ${oneRow(roll)};`,
    (roll) => `UPDATE child SET value = value + 1 WHERE id = ${roll.upTo(2)};`,
    (roll) => `UPDATE child SET test = ${roll.upTo(2)} WHERE id = ${roll.upTo(2)};`,
    (roll) => `INSERT INTO test VALUES (${roll.upTo(3)}, '${roll.one(['b', 'c'])}', 30);`,
  ],
  locks: [
    (roll) =>
      `SELECT value FROM test WHERE ${oneRow(roll)} ORDER BY id FOR ${roll.one(['UPDATE', 'SHARE', 'KEY SHARE'])} ${roll.one(['', 'NOWAIT', 'SKIP LOCKED'])};`,
  ],
}

/** Sessions that name rows by their keys, and by other conditions that meet them. */
export function randomRowSpec(seed: number): Spec {
  const roll = dice(seed)
  const sessions = ['a', 'b'].map((name) => session(roll, name, roll.upTo(6), byRow))
  return parseSpec(`random rows ${seed}`, [rowSetup, ...sessions].join('\n'))
}
