/** Flows that look whether, or how many, and insert. */
import type { Family, Racy, Sent } from './racy-flows.ts'

const empty = 'TRUNCATE box, audit, prefs, accounts, users, members, lines RESTART IDENTITY'
const seed = [
  empty,
  'INSERT INTO accounts VALUES (1, 1), (2, 1)',
  // A row that has the number of an account, and not as its key.
  'INSERT INTO users VALUES (7, 1)',
]

/** Inserts if the last look found fewer than so many. */
function looked(
  reads: readonly string[],
  insert: Sent,
  fix: Family,
  code: RegExp,
  more: Partial<Racy> & { readonly most?: number } = {},
): Racy {
  const { most = 1, ...rest } = more
  return {
    seed,
    reads,
    writes(_row, _, all) {
      const last = all.at(-1) ?? []
      const count = Number(last[0]?.['count'] ?? last.length)
      return count >= most ? undefined : [insert]
    },
    fix,
    code,
    ...rest,
  }
}

const account = /^SELECT 1 FROM accounts WHERE id = 1 FOR UPDATE$/
const guard = /^await hf\.guard/

export const inserts: Readonly<Record<string, Racy>> = {
  'only one of a kind': looked(
    [`SELECT id FROM members WHERE email = 'x'`],
    [`INSERT INTO members (user_id, email) VALUES (1, 'x')`],
    'index',
    /^CREATE UNIQUE INDEX ON members \(email\) -- then/,
  ),
  'only one in a state that is the default': looked(
    [`SELECT id FROM members WHERE user_id = 1 AND status = 'active'`],
    ['INSERT INTO members (user_id) VALUES ($1)', 1],
    'index',
    /^CREATE UNIQUE INDEX ON members \(user_id\) WHERE status = 'active' -- then/,
    { seed: [...seed, `INSERT INTO members (user_id, status) VALUES (1, 'gone'), (1, 'gone')`] },
  ),
  'only one with a flag that is the default': looked(
    ['SELECT count(*)::int AS count FROM members WHERE user_id = 1 AND kept = true'],
    ['INSERT INTO members (user_id) VALUES ($1)', 1],
    'index',
    /^CREATE UNIQUE INDEX ON members \(user_id\) WHERE kept = true -- then/,
    { seed: [...seed, 'INSERT INTO members (user_id, kept) VALUES (1, false), (1, false)'] },
  ),
  'only one in a state that is not the one inserted': looked(
    [`SELECT id FROM members WHERE user_id = 1 AND status = 'active'`],
    [`INSERT INTO members (user_id, status) SELECT 1, 'active'`],
    'lock before',
    account,
  ),
  'rows that are against it are there': looked(
    [`SELECT id FROM members WHERE email = 'x' AND user_id = 1`],
    [`INSERT INTO members (user_id, email) VALUES (1, 'x')`],
    'lock before',
    account,
    {
      seed: [
        ...seed,
        // Two of another kind: the rule is not one about all of them.
        `INSERT INTO members (user_id, email) VALUES (1, 'y'), (1, 'y')`,
      ],
    },
  ),
  'a capacity that happens to be one': {
    ...looked(
      [
        'SELECT id, seats FROM accounts WHERE id = 1',
        'SELECT count(*)::int AS count FROM members WHERE user_id = 1',
      ],
      ['INSERT INTO members (user_id) VALUES (1)'],
      'lock before',
      account,
    ),
    writes: (found, _, [limits]) =>
      Number(found?.['count']) >= Number(limits?.[0]?.['seats'])
        ? undefined
        : [['INSERT INTO members (user_id) VALUES (1)']],
  },
  'a capacity that happens to be one, by rows': {
    ...looked(
      ['SELECT seats FROM accounts WHERE id = 1', 'SELECT id FROM members WHERE user_id = 1'],
      ['INSERT INTO members (user_id) VALUES (1)'],
      'lock before',
      account,
    ),
    writes: (_row, _, [limits, found]) =>
      (found?.length ?? 0) >= Number(limits?.[0]?.['seats'])
        ? undefined
        : [['INSERT INTO members (user_id) VALUES (1)']],
  },
  'a capacity, as Prisma asks': {
    seed: ['TRUNCATE "Event", "Ticket" RESTART IDENTITY', 'INSERT INTO "Event" VALUES (1, 1)'],
    reads: [
      'SELECT "public"."Event"."id", "public"."Event"."capacity" FROM "public"."Event" WHERE ("public"."Event"."id" = 1 AND 1=1) LIMIT 1 OFFSET 0',
      'SELECT COUNT(*) AS "count" FROM (SELECT "public"."Ticket"."id" FROM "public"."Ticket" WHERE "public"."Ticket"."eventId" = 1 OFFSET 0) AS "sub"',
    ],
    writes: (found, who, [limits]) =>
      Number(found?.['count']) >= Number(limits?.[0]?.['capacity'])
        ? undefined
        : [
            [
              'INSERT INTO "public"."Ticket" ("eventId","userId") VALUES (1,$1) RETURNING "public"."Ticket"."id"',
              who === 'a' ? 1 : 2,
            ],
          ],
    fix: 'lock before',
    code: /^SELECT 1 FROM "Event" WHERE id = 1 FOR UPDATE$/,
  },
  'up to a limit': looked(
    ['SELECT count(*)::int AS count FROM members WHERE user_id = 1'],
    ['INSERT INTO members (user_id) VALUES (1)'],
    'lock before',
    account,
    { most: 2, seed: [...seed, 'INSERT INTO members (user_id) VALUES (1)'] },
  ),
  'an id that refers to nothing': looked(
    ['SELECT count(*)::int AS count FROM members WHERE room_id = 1'],
    ['INSERT INTO members (user_id, room_id) VALUES (1, 1)'],
    'name',
    guard,
    { most: 2, seed: [...seed, 'INSERT INTO members (user_id, room_id) VALUES (1, 1)'] },
  ),
  'a running total': {
    seed: [empty, 'INSERT INTO lines (wallet, delta, balance) VALUES (1, 9, 9)'],
    reads: ['SELECT balance FROM lines WHERE wallet = 1 ORDER BY id DESC LIMIT 1'],
    writes: (row) => [
      [
        'INSERT INTO lines (wallet, delta, balance) VALUES (1, 1, $1)',
        Number(row?.['balance']) + 1,
      ],
    ],
    fix: 'name',
    code: guard,
  },
  'the next number': {
    seed: [empty, 'INSERT INTO lines (wallet, number) VALUES (1, 4)'],
    reads: ['SELECT coalesce(max(number), 0) + 1 AS next FROM lines'],
    writes: (row, who) => [
      ['INSERT INTO lines (wallet, number) VALUES ($1, $2)', who === 'a' ? 1 : 2, row?.['next']],
    ],
    fix: 'index',
    code: /^CREATE UNIQUE INDEX ON lines \(number\)$/,
  },
  'the next number of each': {
    seed: [empty, 'INSERT INTO lines (wallet, number) VALUES (1, 4), (2, 4)'],
    reads: ['SELECT number FROM lines WHERE wallet = 1 ORDER BY number DESC LIMIT 1'],
    writes: (row, who) => [
      [
        'INSERT INTO lines (wallet, delta, number) VALUES (1, $1, $2)',
        who === 'a' ? 1 : 2,
        Number(row?.['number']) + 1,
      ],
    ],
    fix: 'index',
    code: /^CREATE UNIQUE INDEX ON lines \(wallet, number\)$/,
  },
}
