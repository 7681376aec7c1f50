/** Races on rows that are there: what was read is no longer so when it is written. */
import { spend, spendBy } from './deeds.ts'
import { account, balance, setBalance, stock } from './grounds.ts'
import { type Entry, numberOf } from './model.ts'

const coupon = {
  tables: ['CREATE TABLE coupon (code text PRIMARY KEY, used bool NOT NULL)'],
  rows: [`INSERT INTO coupon VALUES ('x', false)`],
}

export const racyRows: readonly Entry[] = [
  {
    name: 'lost-update',
    racy: true,
    why: 'both read 100 and write 70; one after the other leaves 40',
    ...account,
    flows: (kit) => spend(kit),
  },
  {
    name: 'lost-update-autocommit',
    racy: true,
    why: 'the same without a transaction',
    ...account,
    flows: (kit) => spendBy(kit, kit.ask),
  },
  {
    name: 'lock-after-read',
    racy: true,
    why: 'the lock is taken after the value was read, so the value written is an old one',
    ...account,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const n = await numberOf(ask(balance))
        await kit.wait()
        await ask(`${balance} FOR UPDATE`)
        await ask(setBalance, n - 30)
        return kit.answer(200)
      }),
  },
  {
    name: 'double-spend-late-lock',
    racy: true,
    why: 'both see 100, lock one after the other, and take 80 each: -60, where a serial order refuses one',
    ...account,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        if ((await numberOf(ask(balance))) < 80) return kit.answer(409)
        await kit.wait()
        await ask('SELECT id FROM account WHERE id = 1 FOR UPDATE')
        await ask('UPDATE account SET n = n - 80 WHERE id = 1')
        return kit.answer(200)
      }),
  },
  {
    name: 'one-sided-lock',
    racy: true,
    why: 'b reads without the lock that a takes, so b can overwrite what a wrote in between',
    ...account,
    flows: {
      a: (kit) => kit.transaction((ask) => spendBy(kit, ask, ' FOR UPDATE')),
      b: (kit) =>
        kit.transaction(async (ask) => {
          const n = await numberOf(ask(balance))
          await ask(setBalance, n + 50)
          return kit.answer(200)
        }),
    },
  },
  {
    name: 'read-in-one-transaction-write-in-the-next',
    racy: true,
    why: 'the lock of the first transaction is gone when the second writes what the first read',
    ...account,
    async flows(kit) {
      const n = await kit.transaction((ask) => numberOf(ask(`${balance} FOR UPDATE`)))
      await kit.wait()
      await kit.transaction((ask) => ask(setBalance, n - 30))
      return kit.answer(200)
    },
  },
  {
    name: 'version-not-looked-at',
    racy: true,
    why: 'the second UPDATE matches no row and is answered 200 all the same',
    tables: ['CREATE TABLE page (id int PRIMARY KEY, version int, body text)'],
    rows: [`INSERT INTO page VALUES (1, 1, '')`],
    async flows(kit) {
      const [page] = await kit.ask('SELECT version, body FROM page WHERE id = 1')
      await kit.wait()
      await kit.ask(
        'UPDATE page SET version = version + 1, body = $1 WHERE id = 1 AND version = $2',
        `${String(page?.['body'])}.`,
        Number(page?.['version']),
      )
      return kit.answer(200)
    },
  },
  {
    name: 'retry-with-an-old-value',
    racy: true,
    why: 'the UPDATE is retried with a value that was read before the retry, so the other one is lost',
    ...account,
    async flows(kit) {
      const n = await numberOf(kit.ask(balance))
      await kit.wait()
      for (let attempt = 1; ; attempt += 1) {
        try {
          await kit.transaction((ask) => ask(setBalance, n - 30), 'REPEATABLE READ')
          return kit.answer(200)
        } catch (error) {
          if (attempt === 3) throw error
        }
      }
    },
  },
  {
    name: 'oversell',
    racy: true,
    why: 'both see one left and take it: -1, and two sales where a serial order has one',
    ...stock,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        if ((await numberOf(ask('SELECT n FROM stock WHERE id = 1'))) < 1) return kit.answer(409)
        await kit.wait()
        await ask('UPDATE stock SET n = n - 1 WHERE id = 1')
        await kit.record(ask, 'sale', { who: kit.who })
        return kit.answer(201)
      }),
  },
  {
    name: 'oversell-autocommit',
    racy: true,
    why: 'the check and the decrement are two transactions',
    ...stock,
    async flows(kit) {
      if ((await numberOf(kit.ask('SELECT n FROM stock WHERE id = 1'))) < 1) return kit.answer(409)
      await kit.wait()
      await kit.ask('UPDATE stock SET n = n - 1 WHERE id = 1')
      return kit.answer(201)
    },
  },
  {
    name: 'coupon-used-twice',
    racy: true,
    why: 'both see it unused; the tables end alike, and both are told 200',
    ...coupon,
    async flows(kit) {
      const free = await kit.ask(`SELECT code FROM coupon WHERE code = 'x' AND NOT used`)
      if (free.length === 0) return kit.answer(409)
      await kit.wait()
      await kit.ask(`UPDATE coupon SET used = true WHERE code = 'x'`)
      return kit.answer(200)
    },
  },
  {
    name: 'token-redeemed-twice',
    racy: true,
    why: 'both see the token before either deletes it; both are told 200, beside a random value',
    tables: ['CREATE TABLE token (token text PRIMARY KEY)'],
    rows: [`INSERT INTO token VALUES ('x')`],
    async flows(kit) {
      const found = await kit.ask(`SELECT token FROM token WHERE token = 'x'`)
      await kit.wait()
      await kit.ask(`DELETE FROM token WHERE token = 'x'`)
      return kit.answer(found.length === 1 ? 200 : 401, { jwt: `${Math.random()}${Math.random()}` })
    },
  },
  {
    name: 'counter-by-hand',
    racy: true,
    why: 'ON CONFLICT writes a number that was computed from an old one',
    tables: ['CREATE TABLE hits (page text PRIMARY KEY, n int NOT NULL)'],
    rows: [],
    async flows(kit) {
      const [hits] = await kit.ask(`SELECT n FROM hits WHERE page = 'home'`)
      await kit.wait()
      await kit.ask(
        `INSERT INTO hits VALUES ('home', $1) ON CONFLICT (page) DO UPDATE SET n = excluded.n`,
        Number(hits?.['n'] ?? 0) + 1,
      )
      return kit.answer(200)
    },
  },
  {
    name: 'json-read-modify-write',
    racy: true,
    why: 'each writes the whole document with its own key only',
    tables: ['CREATE TABLE profile (id int PRIMARY KEY, data jsonb NOT NULL)'],
    rows: [`INSERT INTO profile VALUES (1, '{}')`],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const [profile] = await ask('SELECT data::text AS data FROM profile WHERE id = 1')
        await kit.wait()
        const data = { ...JSON.parse(String(profile?.['data'])), [kit.who]: true }
        await ask('UPDATE profile SET data = $1::jsonb WHERE id = 1', JSON.stringify(data))
        return kit.answer(200)
      }),
  },
  {
    name: 'tags-read-append-write',
    racy: true,
    why: 'each writes the list that it read with its own tag, so one tag is lost',
    tables: ['CREATE TABLE post (id int PRIMARY KEY, tags text NOT NULL)'],
    rows: [`INSERT INTO post VALUES (1, '')`],
    async flows(kit) {
      const [post] = await kit.ask('SELECT tags FROM post WHERE id = 1')
      await kit.wait()
      await kit.ask(
        'UPDATE post SET tags = $1 WHERE id = 1',
        `${String(post?.['tags'])},${kit.who}`,
      )
      return kit.answer(200)
    },
  },
  {
    name: 'toggle-by-hand',
    racy: true,
    why: 'two toggles must leave what was there; both write true',
    tables: ['CREATE TABLE lamp (id int PRIMARY KEY, lit bool NOT NULL)'],
    rows: ['INSERT INTO lamp VALUES (1, false)'],
    async flows(kit) {
      const [lamp] = await kit.ask('SELECT lit FROM lamp WHERE id = 1')
      await kit.wait()
      await kit.ask('UPDATE lamp SET lit = $1 WHERE id = 1', lamp?.['lit'] !== true)
      return kit.answer(200)
    },
  },
  {
    name: 'lock-column-by-hand',
    racy: true,
    why: 'both see the lock column free and set it without a condition; both go on',
    tables: ['CREATE TABLE lease (name text PRIMARY KEY, holder text)'],
    rows: [`INSERT INTO lease VALUES ('job', NULL)`],
    async flows(kit) {
      const free = await kit.ask(`SELECT name FROM lease WHERE name = 'job' AND holder IS NULL`)
      if (free.length === 0) return kit.answer(409)
      await kit.wait()
      await kit.ask(`UPDATE lease SET holder = $1 WHERE name = 'job'`, kit.who)
      return kit.answer(200)
    },
  },
  {
    name: 'paid-and-cancelled',
    racy: true,
    why: 'both see the order pending; both are told that they changed it',
    tables: ['CREATE TABLE purchase (id int PRIMARY KEY, status text NOT NULL)'],
    rows: [`INSERT INTO purchase VALUES (1, 'pending')`],
    async flows(kit) {
      const [purchase] = await kit.ask('SELECT status FROM purchase WHERE id = 1')
      if (purchase?.['status'] !== 'pending') return kit.answer(409)
      await kit.wait()
      const status = kit.who === 'a' ? 'paid' : 'cancelled'
      await kit.ask('UPDATE purchase SET status = $1 WHERE id = 1', status)
      return kit.answer(200)
    },
  },
]
