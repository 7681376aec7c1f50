/** Safe twins on rows that are there: the statement that writes decides, or a lock comes first. */
import { spend, spendBy } from './deeds.ts'
import { account, balance, setBalance, stock } from './grounds.ts'
import { type Entry, numberOf, orRefuse, withRetry } from './model.ts'

const page = {
  tables: ['CREATE TABLE page (id int PRIMARY KEY, version int, body text)'],
  rows: [`INSERT INTO page VALUES (1, 1, '')`],
}
const savePage =
  'UPDATE page SET version = version + 1, body = $1 WHERE id = 1 AND version = $2 RETURNING id'

export const safeRows: readonly Entry[] = [
  {
    name: 'for-update-first',
    racy: false,
    why: 'the row is locked before it is read, so the second reads what the first wrote',
    ...account,
    flows: (kit) => kit.transaction((ask) => spendBy(kit, ask, ' FOR UPDATE')),
  },
  {
    name: 'for-no-key-update-first',
    racy: false,
    why: 'the weaker lock excludes itself as well',
    ...account,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const n = await numberOf(ask(`${balance} FOR NO KEY UPDATE`))
        await kit.wait()
        if (n < 80) return kit.answer(409)
        await ask(setBalance, n - 80)
        return kit.answer(200)
      }),
  },
  {
    name: 'locked-table-first',
    racy: false,
    why: 'the table is locked against other writers before anything is read',
    ...account,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await ask('LOCK TABLE account IN EXCLUSIVE MODE')
        return await spendBy(kit, ask)
      }),
  },
  {
    name: 'advisory-lock-first',
    racy: false,
    why: 'both take the same key first and keep it to the end of the transaction',
    ...account,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await ask('SELECT 1 AS got FROM pg_advisory_xact_lock(11)')
        return await spendBy(kit, ask)
      }),
  },
  {
    name: 'advisory-lock-or-refused',
    racy: false,
    why: 'whoever does not get the key at once is answered 409 and does nothing',
    ...account,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const [got] = await ask('SELECT pg_try_advisory_xact_lock(11) AS got')
        if (got?.['got'] !== true) return kit.answer(409)
        return await spendBy(kit, ask)
      }),
  },
  {
    name: 'nowait-or-refused',
    racy: false,
    why: 'whoever finds the row locked is answered 409 and does nothing',
    ...account,
    flows: (kit) =>
      orRefuse(kit, ['55P03'], () =>
        kit.transaction((ask) => spendBy(kit, ask, ' FOR UPDATE NOWAIT')),
      ),
  },
  {
    name: 'repeatable-read-refused',
    racy: false,
    why: 'REPEATABLE READ fails an update of a row that has changed since; the error is thrown',
    ...account,
    flows: (kit) => spend(kit, 'REPEATABLE READ'),
  },
  {
    name: 'repeatable-read-retried',
    racy: false,
    why: 'the whole transaction is run again, its read included',
    ...account,
    flows: (kit) => withRetry(() => spend(kit, 'REPEATABLE READ')),
  },
  {
    name: 'serializable-refused',
    racy: false,
    why: 'SERIALIZABLE lets only serial results commit; the error is answered 409',
    ...account,
    flows: (kit) => orRefuse(kit, ['40001'], () => spend(kit, 'SERIALIZABLE')),
  },
  {
    name: 'serializable-retried',
    racy: false,
    why: 'the whole transaction is run again until it commits',
    ...account,
    flows: (kit) => withRetry(() => spend(kit, 'SERIALIZABLE')),
  },
  {
    name: 'atomic-counter',
    racy: false,
    why: 'the new value is computed from the row as it is when it is locked',
    ...account,
    async flows(kit) {
      await kit.wait()
      await kit.ask('UPDATE account SET n = n - 30 WHERE id = 1')
      return kit.answer(200)
    },
  },
  {
    name: 'checked-by-a-constraint',
    racy: false,
    why: 'the database refuses a balance below zero, whatever was read before',
    tables: ['CREATE TABLE purse (id int PRIMARY KEY, n int NOT NULL CHECK (n >= 0))'],
    rows: ['INSERT INTO purse VALUES (1, 100)'],
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await kit.wait()
        await ask('UPDATE purse SET n = n - 80 WHERE id = 1')
        return kit.answer(200)
      }),
  },
  {
    name: 'conditional-update',
    racy: false,
    why: 'the condition is checked again on the locked row; whoever matches none sells nothing',
    ...stock,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        await kit.wait()
        const sold = await ask('UPDATE stock SET n = n - 1 WHERE id = 1 AND n > 0 RETURNING id')
        if (sold.length === 0) return kit.answer(409)
        await kit.record(ask, 'sale', { who: kit.who })
        return kit.answer(201)
      }),
  },
  {
    name: 'conditional-update-after-a-look',
    racy: false,
    why: 'what was looked at before decides nothing but an early refusal',
    ...stock,
    async flows(kit) {
      if ((await numberOf(kit.ask('SELECT n FROM stock WHERE id = 1'))) < 1) return kit.answer(409)
      await kit.wait()
      const sold = await kit.ask('UPDATE stock SET n = n - 1 WHERE id = 1 AND n > 0 RETURNING id')
      return kit.answer(sold.length === 1 ? 201 : 409)
    },
  },
  {
    name: 'token-deleted-once',
    racy: false,
    why: 'only one DELETE finds the row; the look before it decides nothing',
    tables: ['CREATE TABLE token (token text PRIMARY KEY)'],
    rows: [`INSERT INTO token VALUES ('x')`],
    async flows(kit) {
      await kit.ask('SELECT token FROM token')
      await kit.wait()
      const gone = await kit.ask(`DELETE FROM token WHERE token = 'x' RETURNING token`)
      const jwt = `${Math.random()}${Math.random()}`
      return gone.length === 1 ? kit.answer(200, { jwt }) : kit.answer(401, { trace: jwt })
    },
  },
  {
    name: 'coupon-conditional',
    racy: false,
    why: 'the second UPDATE finds it used',
    tables: ['CREATE TABLE coupon (code text PRIMARY KEY, used bool NOT NULL)'],
    rows: [`INSERT INTO coupon VALUES ('x', false)`],
    async flows(kit) {
      await kit.wait()
      const used = await kit.ask(
        `UPDATE coupon SET used = true WHERE code = 'x' AND NOT used RETURNING code`,
      )
      return kit.answer(used.length === 1 ? 200 : 409)
    },
  },
  {
    name: 'version-refused',
    racy: false,
    why: 'whoever matches no row with the version read is answered 409',
    ...page,
    async flows(kit) {
      const [read] = await kit.ask('SELECT version, body FROM page WHERE id = 1')
      await kit.wait()
      const saved = await kit.ask(savePage, `${String(read?.['body'])}.`, Number(read?.['version']))
      return kit.answer(saved.length === 1 ? 200 : 409)
    },
  },
  {
    name: 'version-retried',
    racy: false,
    why: 'whoever matches no row reads again; each loser loses to somebody who won',
    ...page,
    async flows(kit) {
      for (;;) {
        const [read] = await kit.ask('SELECT version, body FROM page WHERE id = 1')
        await kit.wait()
        const saved = await kit.ask(
          savePage,
          `${String(read?.['body'])}.`,
          Number(read?.['version']),
        )
        if (saved.length === 1) return kit.answer(200)
      }
    },
  },
  {
    name: 'json-merged-by-the-server',
    racy: false,
    why: 'the server merges into the row as it is when it is locked',
    tables: ['CREATE TABLE profile (id int PRIMARY KEY, data jsonb NOT NULL)'],
    rows: [`INSERT INTO profile VALUES (1, '{}')`],
    async flows(kit) {
      await kit.wait()
      const data = JSON.stringify({ [kit.who]: true })
      await kit.ask('UPDATE profile SET data = data || $1::jsonb WHERE id = 1', data)
      return kit.answer(200)
    },
  },
  {
    name: 'toggled-by-the-server',
    racy: false,
    why: 'NOT is applied to the row as it is when it is locked',
    tables: ['CREATE TABLE lamp (id int PRIMARY KEY, lit bool NOT NULL)'],
    rows: ['INSERT INTO lamp VALUES (1, false)'],
    async flows(kit) {
      await kit.wait()
      await kit.ask('UPDATE lamp SET lit = NOT lit WHERE id = 1')
      return kit.answer(200)
    },
  },
  {
    name: 'lease-conditional',
    racy: false,
    why: 'the lock column is set only where it is free',
    tables: ['CREATE TABLE lease (name text PRIMARY KEY, holder text)'],
    rows: [`INSERT INTO lease VALUES ('job', NULL)`],
    async flows(kit) {
      await kit.wait()
      const got = await kit.ask(
        `UPDATE lease SET holder = $1 WHERE name = 'job' AND holder IS NULL RETURNING name`,
        kit.who,
      )
      return kit.answer(got.length === 1 ? 200 : 409)
    },
  },
  {
    name: 'paid-or-cancelled',
    racy: false,
    why: 'each changes the status only while it is pending',
    tables: ['CREATE TABLE purchase (id int PRIMARY KEY, status text NOT NULL)'],
    rows: [`INSERT INTO purchase VALUES (1, 'pending')`],
    async flows(kit) {
      await kit.wait()
      const changed = await kit.ask(
        `UPDATE purchase SET status = $1 WHERE id = 1 AND status = 'pending' RETURNING id`,
        kit.who === 'a' ? 'paid' : 'cancelled',
      )
      return kit.answer(changed.length === 1 ? 200 : 409)
    },
  },
  {
    name: 'different-rows',
    racy: false,
    why: 'each reads and writes its own row',
    ...account,
    flows: (kit) =>
      kit.transaction(async (ask) => {
        const id = kit.who === 'a' ? 1 : 2
        const n = await numberOf(ask('SELECT n FROM account WHERE id = $1', id))
        await kit.wait()
        await ask('UPDATE account SET n = $1 WHERE id = $2', n - 30, id)
        return kit.answer(200)
      }),
  },
]
