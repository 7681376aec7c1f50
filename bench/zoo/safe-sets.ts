/** Safe twins on what is not there yet and on several rows: constraints, locks of a parent, one snapshot. */
import { leave, register, sum, sumOfTwoReads, transfer } from './deeds.ts'
import { account, jobs, onCall, uploadCount, uploads } from './grounds.ts'
import { type Entry, numberOf, orRefuse, withRetry } from './model.ts'

const users = {
  tables: ['CREATE TABLE users ({record}, email text UNIQUE, who text)'],
  rows: [],
}

export const safeSets: readonly Entry[] = [
  {
    name: 'unique-thrown',
    racy: false,
    why: 'the constraint lets one in; the other one throws 23505 and leaves nothing',
    ...users,
    flows: (kit) => register(kit),
  },
  {
    name: 'unique-answered',
    racy: false,
    why: 'the same, and 23505 is answered 409 as the check is',
    ...users,
    flows: (kit) => orRefuse(kit, ['23505'], () => register(kit)),
  },
  {
    name: 'on-conflict-do-nothing',
    racy: false,
    why: 'one INSERT returns a row, the other one none',
    tables: ['CREATE TABLE member (email text PRIMARY KEY, who text)'],
    rows: [],
    async flows(kit) {
      await kit.wait()
      const rows = await kit.ask(
        `INSERT INTO member VALUES ('x', $1) ON CONFLICT DO NOTHING RETURNING who`,
        kit.who,
      )
      return kit.answer(rows.length === 1 ? 201 : 409)
    },
  },
  {
    name: 'on-conflict-add-one',
    racy: false,
    why: 'the second adds to the row as the first left it',
    tables: ['CREATE TABLE hits (page text PRIMARY KEY, n int NOT NULL)'],
    rows: [],
    async flows(kit) {
      await kit.wait()
      await kit.ask(
        `INSERT INTO hits VALUES ('home', 1) ON CONFLICT (page) DO UPDATE SET n = hits.n + 1`,
      )
      return kit.answer(200)
    },
  },
  {
    name: 'serializable-insert-refused',
    racy: false,
    why: 'SERIALIZABLE sees that each read what the other one inserted into',
    tables: ['CREATE TABLE users ({record}, email text, who text)'],
    rows: [],
    flows: (kit) =>
      orRefuse(kit, ['40001'], () => kit.transaction((ask) => register(kit, ask), 'SERIALIZABLE')),
  },
  {
    name: 'serializable-write-skew-thrown',
    racy: false,
    why: 'SERIALIZABLE ends one of the two',
    ...onCall,
    flows: (kit) => leave(kit, 'SERIALIZABLE'),
  },
  {
    name: 'serializable-write-skew-retried',
    racy: false,
    why: 'whoever is ended runs again, sees one on call and refuses',
    ...onCall,
    flows: (kit) => withRetry(() => leave(kit, 'SERIALIZABLE')),
  },
  {
    name: 'all-rows-locked-first',
    racy: false,
    why: 'both lock all rows of the rule, in one order, before they look',
    ...onCall,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const rows = await ask('SELECT name FROM doctor WHERE on_call ORDER BY name FOR UPDATE')
        if (rows.length < 2) return kit.answer(409)
        await kit.wait()
        await ask('UPDATE doctor SET on_call = false WHERE name = $1', kit.who)
        return kit.answer(200)
      }),
  },
  {
    name: 'parent-locked-first',
    racy: false,
    why: 'whoever counts holds the lock of the owner, and whoever inserts as well',
    ...uploads,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await ask('SELECT id FROM owner WHERE id = 1 FOR UPDATE')
        if ((await numberOf(ask(uploadCount))) >= 1) return kit.answer(409)
        await kit.wait()
        await kit.record(ask, 'upload', { owner: 1, who: kit.who })
        return kit.answer(201)
      }),
  },
  {
    name: 'only-inserts',
    racy: false,
    why: 'each inserts a row of its own and reads nothing',
    ...uploads,
    async flows(kit) {
      await kit.wait()
      await kit.record(kit.ask, 'upload', { owner: 1, who: kit.who })
      return kit.answer(201)
    },
  },
  {
    name: 'number-by-counter-row',
    racy: false,
    why: 'UPDATE … RETURNING gives each number once, and the lock lasts to the end',
    tables: [
      'CREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL)',
      'CREATE TABLE invoice (number int PRIMARY KEY, who text)',
    ],
    rows: ['INSERT INTO counter VALUES (1, 7)'],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const n = await numberOf(ask('UPDATE counter SET n = n + 1 WHERE id = 1 RETURNING n'))
        await kit.wait()
        await ask('INSERT INTO invoice VALUES ($1, $2)', n, kit.who)
        return kit.answer(201, { number: n })
      }),
  },
  {
    name: 'number-by-max-refused',
    racy: false,
    why: 'the number is the primary key, so the second INSERT of it throws and leaves nothing',
    tables: ['CREATE TABLE invoice (number int PRIMARY KEY, who text)'],
    rows: [`INSERT INTO invoice VALUES (7, 'z')`],
    async flows(kit) {
      const n = await numberOf(kit.ask('SELECT max(number) + 1 AS n FROM invoice'))
      await kit.wait()
      await kit.ask('INSERT INTO invoice VALUES ($1, $2)', n, kit.who)
      return kit.answer(201)
    },
  },
  {
    name: 'exclusion-constraint',
    racy: false,
    why: 'the database refuses bookings that overlap (23P01)',
    tables: [
      'CREATE TABLE booking ({record}, who text, during int4range, EXCLUDE USING gist (during WITH &&))',
    ],
    rows: [],
    flows: (kit) =>
      orRefuse(kit, ['23P01'], async () => {
        await kit.wait()
        await kit.record(kit.ask, 'booking', { who: kit.who, during: '[1,5)' })
        return kit.answer(201)
      }),
  },
  {
    name: 'partial-unique-index',
    racy: false,
    why: 'at most one row may be active; the second throws',
    tables: [
      'CREATE TABLE subscription ({record}, who text, active bool)',
      'CREATE UNIQUE INDEX one_active ON subscription (active) WHERE active',
    ],
    rows: [],
    async flows(kit) {
      await kit.wait()
      await kit.record(kit.ask, 'subscription', { who: kit.who, active: true })
      return kit.answer(201)
    },
  },
  {
    name: 'deferred-constraint',
    racy: false,
    why: 'the constraint is checked at COMMIT, which fails for the second',
    tables: [
      'CREATE TABLE slot ({record}, who text, slot int UNIQUE DEFERRABLE INITIALLY DEFERRED)',
    ],
    rows: [],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await kit.record(ask, 'slot', { who: kit.who, slot: 1 })
        await kit.wait()
        return kit.answer(201)
      }),
  },
  {
    name: 'foreign-key',
    racy: false,
    why: 'the key keeps the parent while a child is inserted, and refuses what comes second',
    tables: [
      'CREATE TABLE parent (id int PRIMARY KEY)',
      'CREATE TABLE child ({record}, parent int REFERENCES parent)',
    ],
    rows: ['INSERT INTO parent VALUES (1)'],
    flows: {
      async a(kit) {
        await kit.wait()
        await kit.record(kit.ask, 'child', { parent: 1 })
        return kit.answer(201)
      },
      async b(kit) {
        await kit.wait()
        await kit.ask('DELETE FROM parent WHERE id = 1')
        return kit.answer(200)
      },
    },
  },
  {
    name: 'claim-skip-locked',
    racy: false,
    why: 'the row stays locked until the claim is committed; others take the next one',
    ...jobs,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const id = await numberOf(
          ask('SELECT id FROM job WHERE owner IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED'),
          'id',
        )
        await kit.wait()
        await ask('UPDATE job SET owner = $1 WHERE id = $2', kit.who, id)
        return kit.answer(200, { job: id })
      }),
  },
  {
    name: 'sum-in-one-statement',
    racy: false,
    why: 'one statement sees one snapshot, and the transfer is one transaction',
    ...account,
    flows: {
      async a(kit) {
        await kit.wait()
        return await sum(kit)
      },
      b: (kit) => transfer(kit, kit.wait),
    },
  },
  {
    name: 'sum-of-two-reads-repeatable',
    racy: false,
    why: 'REPEATABLE READ gives both reads one snapshot',
    ...account,
    flows: {
      a: (kit) => sumOfTwoReads(kit, 'REPEATABLE READ'),
      b: (kit) => transfer(kit),
    },
  },
  {
    name: 'charged-once',
    racy: false,
    why: 'whoever notes the key charges in the same transaction; others wait for it and see it',
    tables: [
      'CREATE TABLE request (key text PRIMARY KEY)',
      'CREATE TABLE charge ({record}, cents int)',
    ],
    rows: [],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const noted = await ask(
          `INSERT INTO request VALUES ('k') ON CONFLICT DO NOTHING RETURNING key`,
        )
        await kit.wait()
        if (noted.length === 1) await kit.record(ask, 'charge', { cents: 100 })
        return kit.answer(noted.length === 1 ? 201 : 409)
      }),
  },
  {
    name: 'table-made-under-a-lock',
    racy: false,
    why: 'whoever makes the table holds the key; the other one waits and finds it made',
    tables: [],
    rows: ['DROP TABLE IF EXISTS made'],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await ask('SELECT 1 AS got FROM pg_advisory_xact_lock(11)')
        await kit.wait()
        await ask('CREATE TABLE IF NOT EXISTS made (id int)')
        return kit.answer(200)
      }),
  },
  {
    name: 'one-order',
    racy: false,
    why: 'both lock row 1 before row 2, so no circle can come about',
    ...account,
    deadlocks: 'fail',
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await ask('UPDATE account SET n = n + 1 WHERE id = 1')
        await kit.wait()
        await ask('UPDATE account SET n = n + 1 WHERE id = 2')
        return kit.answer(200)
      }),
  },
  {
    name: 'opened-then-filed',
    racy: false,
    why: 'one read and one insert against one update: each order of them is a serial one',
    tables: ['CREATE TABLE shop (open bool)', 'CREATE TABLE filed ({record}, what text)'],
    rows: ['INSERT INTO shop VALUES (false)'],
    flows: {
      async a(kit) {
        const [shop] = await kit.ask('SELECT open FROM shop')
        await kit.wait()
        if (shop?.['open'] !== true) return kit.answer(200, { said: 'closed' })
        await kit.record(kit.ask, 'filed', { what: 'tea' })
        return kit.answer(200, { said: 'filed' })
      },
      async b(kit) {
        await kit.ask('UPDATE shop SET open = true')
        return kit.answer(200)
      },
    },
  },
]
