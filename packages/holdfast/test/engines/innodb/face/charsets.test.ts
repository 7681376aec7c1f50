import { createPool as mariadbPool } from 'mariadb'
import { createPool as mysql2Pool } from 'mysql2/promise'
import { beforeEach, describe, expect, test } from 'vitest'
import { fromMariadb } from '../../../../src/drivers/mariadb.ts'
import { fromMysql2 } from '../../../../src/drivers/mysql2.ts'
import { createHoldfast, type Holdfast, migrate } from '../../../../src/mysql.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle } from '../support/innodb-clients.ts'

interface Opened extends AsyncDisposable {
  readonly hf: Holdfast<Handle>
  query(text: string): Promise<unknown>
}

/** A connection that has not all characters of a key writes `?` for them, and so means another row. */
eachInnodb((place) => {
  const isClient = place.client === 'mysql2' || place.client === 'mariadb'
  const open = (charset: string): Opened => {
    const { hostname: host, port, username: user, pathname } = new URL(place.url())
    const given = { host, port: Number(port), user, database: pathname.slice(1), charset }
    const pool =
      place.client === 'mysql2'
        ? mysql2Pool({ ...given, connectionLimit: 3 })
        : mariadbPool({
            ...given,
            connectionLimit: 3,
            minimumIdle: 0,
            allowPublicKeyRetrieval: true,
          })
    const driver =
      place.client === 'mysql2' ? fromMysql2(pool as never) : fromMariadb(pool as never)
    return {
      hf: createHoldfast(driver as never) as unknown as Holdfast<Handle>,
      query: async (text) => await (pool as { query(text: string): Promise<unknown> }).query(text),
      [Symbol.asyncDispose]: async () => {
        await pool.end()
      },
    }
  }

  describe.skipIf(!isClient)('a pool with latin1', () => {
    beforeEach(async () => {
      await using pool = place.pool()
      await migrate(pool.driver)
      await using session = await place.session()
      const columns = `version INT NOT NULL DEFAULT 1, status VARCHAR(9) NOT NULL DEFAULT 'pending',
        claim_token CHAR(36), lease_until TIMESTAMP(6) NULL, note TEXT, KEY due (status, k)`
      for (const [table, charset] of [
        ['wide', 'utf8mb4'],
        ['narrow', 'latin1'],
        ['plain', 'ascii'],
      ])
        await session.all(
          `DROP TABLE IF EXISTS ${table}`,
          `CREATE TABLE ${table} (k VARCHAR(20) PRIMARY KEY, ${columns}) ENGINE=InnoDB DEFAULT CHARSET=${charset}`,
        )
      await session.all(
        "INSERT INTO wide (k) VALUES ('?'), ('ж'), ('щ'), ('é')",
        "INSERT INTO narrow (k) VALUES ('?'), ('é')",
        "INSERT INTO plain (k) VALUES ('?'), ('e')",
      )
    })

    test('control: keys with other letters meet', async () => {
      await using client = open('latin1')
      const said = JSON.stringify(await client.query('SELECT k FROM wide ORDER BY HEX(k)'))
      expect(said.match(/"\?"/g)).toHaveLength(3)
    })

    test('claims of keys that it has not are refused, and others are not', async () => {
      await using client = open('latin1')
      const { hf } = client
      const wide = hf.claims<{ k: string }>({ table: 'wide', key: ['k'] })
      expect((await wide.check()).map(({ code, object }) => `${code} ${object}`)).toEqual([
        'key-type column wide.k',
      ])
      await expect(wide.claim(4)).rejects.toMatchObject({ code: 'CLAIM_TABLE_UNFIT' })
      for (const [table, keys] of [
        ['narrow', ['?', 'é']],
        ['plain', ['?', 'e']],
      ] as const) {
        const claims = hf.claims<{ k: string }>({ table, key: ['k'] })
        const claimed = await claims.claim(4)
        expect(claimed.map(({ row }) => row.k).toSorted()).toEqual([...keys].toSorted())
        expect((await claims.complete(claimed)).kept).toHaveLength(2)
      }
      await using all = open('utf8mb4')
      const claimed = await all.hf.claims<{ k: string }>({ table: 'wide', key: ['k'] }).claim(4)
      expect(claimed.map(({ row }) => row.k).toSorted()).toEqual(['?', 'é', 'ж', 'щ'].toSorted())
      await using three = open('utf8')
      await expect(three.hf.claims({ table: 'wide', key: ['k'] }).claim(1)).rejects.toMatchObject({
        code: 'CLAIM_TABLE_UNFIT',
      })
    })

    test('a value that it has not is refused, as a key, in a change and of claims', async () => {
      await using client = open('latin1')
      const { hf } = client
      const keyed = { code: 'ROWS_KEY_INVALID' }
      await hf.transaction(async (tx) => {
        const lock = (key: string): Promise<{ readonly rows: readonly unknown[] }> =>
          hf.rows.lock(tx, 'wide', [key], { keyColumns: ['k'] })
        await expect(lock('ж')).rejects.toMatchObject(keyed)
        expect((await lock('é')).rows).toHaveLength(1)
        const change = (note: string, key = '?'): Promise<unknown> =>
          hf.rows.updateVersioned(tx, 'wide', key, {
            version: 1,
            set: { note },
            keyColumns: ['k'],
          })
        await expect(change('щ')).rejects.toMatchObject({ code: 'OPTION_INVALID' })
        await expect(change('a', 'щ')).rejects.toMatchObject(keyed)
        await change('é')
      })
      const states = { pending: 'ждёт', claimed: 'взят', done: 'готов' }
      await expect(
        hf.claims({ table: 'plain', key: ['k'], values: states }).claim(1),
      ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    })

    test('what is remembered of work is what it gave', async () => {
      await using client = open('latin1')
      const run = async (): Promise<unknown> =>
        (await client.hf.once(`key ${place.client}`, async () => 'жé😀')).result
      expect(await run()).toBe('жé😀')
      expect(await run()).toBe('жé😀')
    })
  })
})
