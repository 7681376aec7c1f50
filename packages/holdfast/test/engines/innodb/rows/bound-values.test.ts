import { deferred } from '@holdfast/testkit'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { lockKey } from '../../../../src/core/locks/lock-key.ts'
import { innodbLocks } from '../../../../src/engines/innodb/locks/taking.ts'
import { innodbRows } from '../../../../src/engines/innodb/rows/row-engine.ts'
import { locksOver } from '../../../../src/locks/locks.ts'
import { rowsOver } from '../../../../src/rows/rows.ts'
import { createTablesOn } from '../../../../src/engines/innodb/schema/create-tables.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle } from '../support/innodb-clients.ts'

/** Stands in every value of a call, and so would stand in a text that has one of them. */
const canary = 'cAnArY'
const canaryNumber = 918273645

/** A connection that writes down each text that is sent on it. */
function noting(texts: string[]): (handle: Handle) => Handle {
  const noted = (text: unknown): void => {
    texts.push(typeof text === 'string' ? text : String((text as { sql: string }).sql))
  }
  return (handle) =>
    new Proxy(handle, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property)
        if (typeof value !== 'function') return value
        if (property !== 'query' && property !== 'execute') return value.bind(target) as unknown
        return (...args: unknown[]) => {
          noted(args[0])
          return value.apply(target, args) as unknown
        }
      },
    })
}

/** Texts as people have them, and as nobody should. */
const pieces = [
  "'",
  '"',
  '\\',
  '`',
  '?',
  '%',
  '\n',
  '\r',
  '--',
  '/*',
  ';',
  'é',
  '😀',
  '\u001a',
  ' ',
  'a',
  '0x41',
  '$1',
  ':a',
]

eachInnodb((place) => {
  beforeAll(async () => {
    await using pool = place.pool()
    await createTablesOn(pool.driver, undefined)
    await using session = await place.session()
    await session.all(
      `CREATE TABLE item (
         id BIGINT UNSIGNED NOT NULL PRIMARY KEY, code VARCHAR(60) NOT NULL UNIQUE, part INT,
         note TEXT, body JSON, bytes BLOB, flag BIT(1), amount DECIMAL(30, 6), ratio DOUBLE,
         version BIGINT NOT NULL DEFAULT 1)
       ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
      `INSERT INTO item (id, code) VALUES (${canaryNumber}, '${canary}'), (18446744073709551615, 'most'), (9007199254740993, 'odd')`,
    )
  })

  test('no value of a call stands in a text that is sent', async () => {
    await using pool = place.pool()
    const texts: string[] = []
    const driver = pool.weakened(noting(texts))
    const rows = rowsOver(innodbRows, driver)
    const locks = locksOver(innodbLocks(), driver)
    const inside = async (body: (tx: Handle) => Promise<unknown>): Promise<void> => {
      await driver.transaction(async (tx) => await body(tx.native), { scopes: [] })
    }
    const keys = [lockKey('cart', canary), lockKey('cart', canaryNumber)]
    for (const each of [keys, keys.slice(0, 1)]) {
      await locks.guard(each, async () => 1)
      await locks.tryGuard(each, async () => 1)
      await inside(async (tx) => await locks.acquire(tx, each, { wait: 300 }))
      await inside(async (tx) => await locks.tryAcquire(tx, each))
      await inside(async (tx) => {
        await locks.acquire(tx, each)
        await locks.assertHeld(tx, each)
        await locks.acquire(tx, each)
      })
    }
    const [has, over] = [deferred(), deferred()]
    const holding = locks.guard(keys, async () => {
      has.resolve()
      await over.promise
    })
    await has.promise
    const late = locks.guard(keys, async () => 1, { wait: 100, queue: false })
    await expect(late).rejects.toMatchObject({ blockers: [{}, {}] })
    over.resolve()
    await holding
    const set = {
      note: canary,
      part: canaryNumber,
      body: { [canary]: canaryNumber },
      bytes: Buffer.from(canary),
      amount: BigInt(canaryNumber),
    }
    for (const wait of ['nowait', 'skip', 300] as const)
      await inside(async (tx) => await rows.lock(tx, 'item', [canaryNumber, 1], { wait }))
    await inside(async (tx) => {
      const by = { keyColumns: ['code'] }
      await rows.lock(tx, 'item', [canary, `${canary}2`], by)
      await rows.updateVersioned(tx, 'item', canaryNumber, { version: 1, set })
    })
    expect(texts.length).toBeGreaterThan(40)
    const shown = texts.filter(
      (text) =>
        text.includes(canary) ||
        text.includes(String(canaryNumber)) ||
        text.includes(Buffer.from(canary).toString('hex')),
    )
    expect(shown).toEqual([])
  })

  const modes = ['', 'NO_BACKSLASH_ESCAPES', 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES']
  test.each(modes)('what is set is what is read, with sql_mode=%s', async (mode) => {
    await using pool = place.pool(1)
    const rows = rowsOver(innodbRows, pool.driver)
    const text = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((all) => all.join(''))
    const row = fc.record({
      note: text,
      body: fc.dictionary(text, fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null))),
      bytes: fc.uint8Array({ maxLength: 9 }),
      flag: fc.boolean(),
      ratio: fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Object.is(n, -0)),
      amount: fc.bigInt({ min: -(10n ** 24n) + 1n, max: 10n ** 24n - 1n }),
    })
    const property = fc.asyncProperty(row, async (set) => {
      const read = await pool.driver.transaction(
        async ({ native: tx }) => {
          await tx.query(`SET SESSION sql_mode = '${mode}'`)
          const [found] = await pool.rows(tx, "SELECT version FROM item WHERE code = 'most'")
          const version = Number(found?.['version'])
          await rows.updateVersioned(tx, 'item', 18446744073709551615n, { version, set })
          const [row] = await pool.rows(
            tx,
            `SELECT HEX(note) AS note, HEX(bytes) AS bytes, flag + 0 AS flag, ratio,
               CAST(amount AS CHAR) AS amount, CAST(body AS CHAR) AS body
             FROM item WHERE code = 'most'`,
          )
          await tx.query('SET SESSION sql_mode = DEFAULT')
          return row
        },
        { scopes: [] },
      )
      expect({
        ...read,
        flag: Number(read?.['flag']) === 1,
        body: JSON.parse(String(read?.['body'])) as unknown,
      }).toEqual({
        note: Buffer.from(set.note).toString('hex').toUpperCase(),
        bytes: Buffer.from(set.bytes).toString('hex').toUpperCase(),
        flag: set.flag,
        ratio: set.ratio,
        amount: `${set.amount}.000000`,
        body: JSON.parse(JSON.stringify(set.body)) as unknown,
      })
    })
    await fc.assert(property, { numRuns: 40, seed: 7 })
  })

  test('a whole number is compared as one, however large', async () => {
    await using pool = place.pool()
    const rows = rowsOver(innodbRows, pool.driver)
    const found = await pool.driver.transaction(
      async ({ native: tx }) =>
        await rows.lock(
          tx,
          'item',
          [18446744073709551615n, 18446744073709551614n, 9007199254740993n, 9007199254740992n],
          {
            columns: ['code'],
          },
        ),
      { scopes: [] },
    )
    expect(found.rows).toEqual([{ code: 'most' }, { code: 'odd' }])
    expect(found.missing).toHaveLength(2)
  })
})
