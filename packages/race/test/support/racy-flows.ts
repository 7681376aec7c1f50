/**
 * Flows that read, decide and write, on columns of all sorts, with the first fix that a report should suggest. Both
 * flows of a pair do the same for `a` and for `b`.
 */
export type Who = 'a' | 'b'
type Row = Readonly<Record<string, unknown>>
/** A statement with its values. */
export type Sent = readonly [text: string, ...values: unknown[]]

export interface Racy {
  readonly seed: readonly string[]
  /** One after the other; the last is the one that a lock is put on. */
  readonly reads: readonly string[]
  /** What is written on the strength of the last one's first row, or of all that was read; undefined to refuse. */
  readonly writes: (
    row: Row | undefined,
    who: Who,
    all: readonly (readonly Row[])[],
  ) => readonly Sent[] | undefined
  /** What the first fix is. */
  readonly fix: Family
  /** Its code, as far as it matters. */
  readonly code: RegExp
  /** The fix as the other flow would write it. */
  readonly adapt?: (code: string, who: Who) => string
}

/** How a fix is applied: to the read, before it, to the schema, in the place of the first write; a lock by name. */
export type Family = 'row lock' | 'lock before' | 'index' | 'statement' | 'name'

/** One table for each type, so that a statement names nothing but what it is about. */
export const schema = `
  CREATE TYPE mood AS ENUM ('new', 'paid', 'void');
  CREATE DOMAIN amount AS int;
  CREATE TABLE box (id int PRIMARY KEY, n int, big int8, money numeric(10, 2), dom amount, ratio real, wide float8,
    word text, flag bool, mood mood, doc jsonb, raw json, tags int[], words text[], at timestamptz, spot point,
    who uuid, used int, most int);
  CREATE TABLE audit (id serial PRIMARY KEY, box int, before int);
  CREATE TABLE prefs (owner int PRIMARY KEY, theme text, hits int);
  CREATE TABLE accounts (id int PRIMARY KEY, seats int);
  CREATE TABLE users (id int PRIMARY KEY, account int);
  CREATE TABLE members (id serial PRIMARY KEY, user_id int NOT NULL REFERENCES accounts, email text,
    status text NOT NULL DEFAULT 'active', kept bool NOT NULL DEFAULT true, room_id int, n int);
  CREATE TABLE "Event" (id int PRIMARY KEY, capacity int);
  CREATE TABLE "Ticket" (id serial PRIMARY KEY, "eventId" int NOT NULL REFERENCES "Event", "userId" int);
  CREATE TABLE lines (id serial PRIMARY KEY, wallet int, delta int, balance int, number int)`

const empty = 'TRUNCATE box, audit, prefs, accounts, users, members, lines RESTART IDENTITY'
const seeded = [
  empty,
  `INSERT INTO box VALUES (1, 50, 50, 50, 50, 0.1, 0.1, '', false, 'new', '{"views": 5, "x": 1, "y": 2}', '{"v": 5}',
    '{1,2,3}', '{r}', '2020-01-01 00:00:00.123456+00', '(1,2)', NULL, 0, 1)`,
  `INSERT INTO accounts VALUES (1, 1), (2, 1)`,
  // A row of another table that has the same number somewhere.
  `INSERT INTO users VALUES (7, 1)`,
]

/** Reads one column of the box and writes it. */
function boxed(
  column: string,
  next: (value: never, who: Who) => unknown,
  fix: Family,
  code: RegExp,
  more: Partial<Racy> = {},
): Racy {
  return {
    seed: seeded,
    reads: [`SELECT ${column} FROM box WHERE id = 1`],
    writes(row, who) {
      const value = next(row?.[column] as never, who)
      return value === undefined
        ? undefined
        : [[`UPDATE box SET ${column} = $1 WHERE id = 1`, value]]
    },
    fix,
    code,
    ...more,
  }
}

const text = JSON.stringify
type Doc = Readonly<Record<string, number>>
const without = (doc: Doc, key: string): string =>
  text(Object.fromEntries(Object.entries(doc).filter(([name]) => name !== key)))
const both = (pattern: RegExp): readonly [Family, RegExp] => ['row lock', pattern]
const locked = both(/FROM box WHERE id = 1 FOR UPDATE$/)
const sum = (column: string, by: number, more = ''): readonly [Family, RegExp] => [
  'statement',
  new RegExp(
    String.raw`SET ${column} = ${column} ${by < 0 ? '-' : String.raw`\+`} ${Math.abs(by)} WHERE id = 1${more}$`,
  ),
]
const still = (value: string): readonly [Family, RegExp] => [
  'statement',
  new RegExp(String.raw`WHERE id = 1 AND \w+ ${value}$`),
]

/** A value that the flow has computed. */
export const values: Readonly<Record<string, Racy>> = {
  'int, added': boxed('n', (n: number) => n + 5, ...sum('n', 5)),
  'int, taken, with a check': boxed(
    'n',
    (n: number) => (n < 20 ? undefined : n - 20),
    ...sum('n', -20, ' AND n >= 20'),
  ),
  'int, taken from less than nothing': boxed('n', (n: number) => n - 30, ...sum('n', -30)),
  'int, up to a limit of the code': boxed(
    'n',
    (n: number) => (n >= 55 ? undefined : n + 5),
    ...still('= 50'),
  ),
  'int, the highest wins': boxed(
    'n',
    (n: number, who) => (n >= 60 ? undefined : who === 'a' ? 70 : 80),
    ...still('= 50'),
  ),
  'int, a claim': boxed('used', (n: number) => (n > 0 ? undefined : 1), ...still('= 0')),
  'int8, added': boxed('big', (n: string) => String(Number(n) + 5), ...sum('big', 5)),
  'numeric, added': boxed('money', (n: string) => String(Number(n) + 5), ...sum('money', 5)),
  'a domain, added': boxed('dom', (n: number) => n + 5, ...sum('dom', 5)),
  'real, computed': boxed('ratio', (n: number, who) => n * (who === 'a' ? 3 : 1.5), ...locked),
  'double precision, added': boxed('wide', (n: number) => n + 5, ...locked),
  'text, an owner': boxed(
    'word',
    (w: string, who) => (w === '' ? who : undefined),
    ...still("= ''"),
  ),
  'text, a state that grows': boxed(
    'word',
    (w: string, who) => (w === 'pay' ? (who === 'a' ? 'paying' : 'payback') : undefined),
    ...still("= 'pay'"),
    { seed: [...seeded, `UPDATE box SET word = 'pay'`] },
  ),
  'text, the letter t': boxed(
    'word',
    (w: string, who) => (w === 't' ? `is ${who}` : undefined),
    ...still("= 't'"),
    { seed: [...seeded, `UPDATE box SET word = 't'`] },
  ),
  'text, a log': boxed('word', (w: string, who) => `${w}${who};`, ...still("= ''")),
  'bool, a flag': boxed('flag', (f: boolean) => (f ? undefined : true), 'statement', /./, {
    // Who was first is told by the second statement.
    writes: (row, who) =>
      row?.['flag'] === true
        ? undefined
        : [
            ['UPDATE box SET flag = true WHERE id = 1'],
            ['INSERT INTO audit (box) VALUES ($1)', who === 'a' ? 1 : 2],
          ],
    code: /AND flag = false$/,
  }),
  'enum, a state': boxed(
    'mood',
    (m: string, who) => (m === 'new' ? (who === 'a' ? 'paid' : 'void') : undefined),
    ...still("= 'new'"),
  ),
  'uuid, nobody': boxed(
    'who',
    (u: unknown, who) => (u === null ? `0000000${who}-0000-4000-8000-000000000000` : undefined),
    ...still('IS NULL'),
  ),
  'timestamptz, extended': boxed(
    'at',
    (at: Date, who) => new Date(at.getTime() + (who === 'a' ? 1 : 2) * 86_400_000),
    ...locked,
  ),
  'point, moved': boxed('spot', (p: { x: number; y: number }) => `(${p.x + 1},${p.y})`, ...locked),
  'jsonb, a counter': boxed(
    'doc',
    (doc: Doc) => text({ ...doc, views: (doc['views'] ?? 0) + 1 }),
    ...still(String.raw`= '\{.*\}'`),
  ),
  'jsonb, a key removed': boxed(
    'doc',
    (doc: Doc, who) => without(doc, who === 'a' ? 'x' : 'y'),
    ...still(String.raw`= '\{.*\}'`),
  ),
  'jsonb, a key of its own added': boxed(
    'doc',
    (doc: Doc, who) => text({ ...doc, [`of ${who}`]: 1 }),
    'statement',
    /SET doc = doc \|\| '\{"of [ab]":1\}' WHERE id = 1$/,
    { adapt: (code, who) => code.replace(/of [ab]/, `of ${who}`) },
  ),
  'jsonb, the same key added': boxed(
    'doc',
    (doc: Doc, who) => ('owner' in doc ? undefined : text({ ...doc, owner: who })),
    ...still(String.raw`= '\{.*\}'`),
  ),
  'jsonb, a list that grows': boxed(
    'doc',
    (list: number[]) => text([...list, 9]),
    'statement',
    /SET doc = doc \|\| '\[9\]' WHERE id = 1$/,
    { seed: [...seeded, `UPDATE box SET doc = '[1]'`] },
  ),
  'json, a key added': boxed('raw', (raw: Doc, who) => text({ ...raw, [who]: 1 }), ...locked),
  'array, appended': boxed(
    'tags',
    (tags: number[]) => [...tags, 9],
    'statement',
    /SET tags = tags \|\| '\{"9"\}'::int4\[\] WHERE id = 1$/,
  ),
  'array of texts, appended': boxed(
    'words',
    (words: string[], who) => [...words, `it's "${who}"`],
    'statement',
    /SET words = words \|\| '\{"it''s \\"[ab]\\""\}'::text\[\] WHERE id = 1$/,
    { adapt: (code, who) => code.replace(/"[ab]\\"/, `"${who}\\"`) },
  ),
  'array, removed': boxed(
    'tags',
    (tags: number[], who) => tags.filter((one) => one !== (who === 'a' ? 1 : 2)),
    ...still(String.raw`= '\{1,2,3\}'`),
  ),
  'array, added once': boxed(
    'tags',
    (tags: number[]) => (tags.includes(9) ? undefined : [...tags, 9]),
    ...still(String.raw`= '\{1,2,3\}'`),
  ),
}

/** A withdrawal that is computed by the UPDATE, after a look. */
function withdrawn(write: Sent, code: RegExp, more: Partial<Racy> = {}): Racy {
  return {
    seed: seeded,
    reads: ['SELECT n FROM box WHERE id = 1'],
    writes: (row) => (Number(row?.['n']) < 30 ? undefined : [write]),
    fix: 'statement',
    code,
    ...more,
  }
}

const enough = /WHERE id = 1 AND n >= 30$/

/** What the UPDATE computes for itself. */
export const computed: Readonly<Record<string, Racy>> = {
  'a difference': withdrawn(['UPDATE box SET n = n - $1 WHERE id = 1', 30], enough),
  'a product': withdrawn(['UPDATE box SET n = n - $1::int * $2::int WHERE id = 1', 3, 10], enough),
  'in parentheses': withdrawn(['UPDATE box SET n = n - ($1::int * 10) WHERE id = 1', 3], enough),
  'a negative sum': withdrawn(['UPDATE box SET n = box.n + $1 WHERE id = 1', -30], enough),
  'a function': withdrawn(['UPDATE box SET n = n - abs(30) WHERE id = 1'], locked[1], {
    fix: 'row lock',
  }),
  'a limit beside it': {
    seed: seeded,
    reads: ['SELECT used, most FROM box WHERE id = 1'],
    writes: (row) =>
      Number(row?.['used']) >= Number(row?.['most'])
        ? undefined
        : [['UPDATE box SET used = used + 1 WHERE id = 1']],
    fix: 'statement',
    code: /AND used \+ 1 <= most$/,
  },
  'a limit of the code': {
    seed: seeded,
    reads: ['SELECT used FROM box WHERE id = 1'],
    writes: (row) =>
      Number(row?.['used']) >= 1 ? undefined : [['UPDATE box SET used = used + 1 WHERE id = 1']],
    fix: 'row lock',
    code: locked[1],
  },
  'the value goes into another table': {
    seed: seeded,
    reads: ['SELECT n FROM box WHERE id = 1'],
    writes: (row, who) => [
      ['UPDATE box SET n = n - $1 WHERE id = 1 AND n >= $1', who === 'a' ? 5 : 10],
      ['INSERT INTO audit (box, before) VALUES (1, $1)', row?.['n']],
    ],
    fix: 'row lock',
    code: locked[1],
  },
  'the value of an unchecked one goes into another table': {
    seed: seeded,
    reads: ['SELECT n FROM box WHERE id = 1'],
    writes: (row, who) => [
      ['UPDATE box SET n = n - $1 WHERE id = 1', who === 'a' ? 5 : 10],
      ['INSERT INTO audit (box, before) VALUES (1, $1)', row?.['n']],
    ],
    fix: 'row lock',
    code: locked[1],
  },
}

const upsert = 'ON CONFLICT (owner) DO UPDATE SET'

export const upserts: Readonly<Record<string, Racy>> = {
  'a text': {
    seed: [empty, `INSERT INTO prefs VALUES (1, 'x', 0)`],
    reads: ['SELECT theme FROM prefs WHERE owner = 1'],
    writes: (row, who) => [
      [
        `INSERT INTO prefs (owner, theme) VALUES (1, $1) ${upsert} theme = $1`,
        `${row?.['theme'] as string}${who}`,
      ],
    ],
    fix: 'row lock',
    code: /FROM prefs WHERE owner = 1 FOR UPDATE$/,
  },
  'a text that is not there yet': {
    seed: [empty],
    reads: ['SELECT theme FROM prefs WHERE owner = 1'],
    writes: (row, who) => [
      [
        `INSERT INTO prefs (owner, theme) VALUES (1, $1) ${upsert} theme = EXCLUDED.theme`,
        `${(row?.['theme'] as string | undefined) ?? ''}${who}`,
      ],
    ],
    fix: 'lock before',
    code: /^SELECT pg_advisory_xact_lock\(hashtext\('prefs 1'\)\)$/,
  },
  'a number': {
    seed: [empty, `INSERT INTO prefs VALUES (1, 'x', 3)`],
    reads: ['SELECT hits FROM prefs WHERE owner = 1'],
    writes: (row) => [
      [
        `INSERT INTO prefs (owner, hits) VALUES (1, $1) ${upsert} hits = $1`,
        Number(row?.['hits'] ?? 0) + 2,
      ],
    ],
    fix: 'statement',
    code: /DO UPDATE SET hits = prefs.hits \+ 2$/,
    adapt: (code) =>
      code
        .replace('INTO prefs …', 'INTO prefs (owner, hits) VALUES (1, 2)')
        .replace('CONFLICT …', 'CONFLICT (owner)'),
  },
}
