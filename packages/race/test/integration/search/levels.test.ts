/** The level of a transaction, as the explorer believes it and as the server says, whatever set it and undid it. */
import { withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import { record } from '../../../src/record.ts'
import type { Flow, FlowContext } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE t (id int PRIMARY KEY, v int);
      CREATE FUNCTION raise_level() RETURNS void LANGUAGE plpgsql AS
        $$ BEGIN PERFORM set_config('default_transaction_isolation', 'repeatable read', false); END $$;
      CREATE FUNCTION raise_any(name text) RETURNS void LANGUAGE plpgsql AS
        $$ BEGIN PERFORM set_config(name, 'repeatable read', false); END $$;
      CREATE FUNCTION tenant() RETURNS void LANGUAGE plpgsql AS
        $$ BEGIN PERFORM set_config('app.tenant', '7', false); END $$;
      CREATE FUNCTION level() RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN RETURN current_setting('transaction_isolation'); END $$`),
  )
})

async function withOne<T>({ pool }: FlowContext, work: (client: PoolClient) => Promise<T>) {
  const client = await pool.connect()
  try {
    return await work(client)
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
}

const repeatable = `SET default_transaction_isolation = 'repeatable read'`
const characteristics = 'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ'
const broken = 'SELECT 1 / 0'

const known: readonly (readonly string[])[] = [
  [repeatable],
  ['BEGIN', repeatable, 'COMMIT'],
  ['BEGIN', repeatable, 'ROLLBACK'],
  ['BEGIN', characteristics, 'ROLLBACK'],
  ['BEGIN', repeatable, broken, 'ROLLBACK'],
  ['BEGIN', repeatable, broken, 'COMMIT'],
  ['BEGIN', 'SAVEPOINT s', repeatable, broken, 'COMMIT'],
  [repeatable, 'BEGIN', 'RESET default_transaction_isolation', 'ROLLBACK'],
  [repeatable, 'BEGIN', 'RESET ALL', broken, 'ROLLBACK'],
  [repeatable, 'BEGIN', 'SET default_transaction_isolation TO DEFAULT', 'COMMIT'],
  ['BEGIN', repeatable, `SET default_transaction_isolation = 'serializable'`, 'ROLLBACK'],
  ['BEGIN', 'SAVEPOINT s', repeatable, 'RELEASE s', 'COMMIT'],
  ['BEGIN', 'SET LOCAL default_transaction_isolation = serializable', 'COMMIT'],
  [`SELECT set_config('app.tenant', '7', false)`],
  ['SELECT tenant()'],
  ['SELECT level()'],
]

const doubtful: readonly (readonly string[])[] = [
  ['BEGIN', 'SAVEPOINT s', repeatable, 'ROLLBACK TO s', 'COMMIT'],
  [`SELECT set_config('default_transaction_isolation', 'repeatable read', false)`],
  [`SELECT set_config('default_' || 'transaction_isolation', 'repeatable read', false)`],
  ['SELECT raise_level()'],
  [`SELECT raise_any('default_transaction_isolation')`],
  [`DO $$ BEGIN SET default_transaction_isolation = 'repeatable read'; END $$`],
  [`UPDATE pg_settings SET setting = 'serializable' WHERE name = 'default_transaction_isolation'`],
  [
    `PREPARE later AS SELECT set_config('default_transaction_isolation', 'repeatable read', $1)`,
    'EXECUTE later(false)',
    'DEALLOCATE later',
  ],
]

/** Of the transaction that follows: what is believed of it, and what the server says. */
async function levelAfter(texts: readonly string[]) {
  let told = ''
  const { steps } = await record({
    url,
    flow: (context) =>
      withOne(context, async (client) => {
        for (const text of texts) await client.query(text).catch(() => undefined)
        await client.query('BEGIN')
        await client.query('SELECT v FROM t')
        told = (await client.query('SHOW transaction_isolation')).rows[0].transaction_isolation
      }),
  })
  const read = steps.find(({ statements }) => statements[0] === 'SELECT v FROM t')
  return { told, believed: read?.footprint.isolation, opaque: read?.footprint.opaque }
}

describe('the level that a footprint has is the one of the server', () => {
  test.each(known.map((texts) => [texts.join('; '), texts]))('%s', async (_, texts) => {
    const { told, believed, opaque } = await levelAfter(texts as readonly string[])
    expect([believed, opaque]).toEqual([told, false])
  })
})

describe('where nobody knows it the step depends on everything', () => {
  test.each(doubtful.map((texts) => [texts.join('; '), texts]))('%s', async (_, texts) => {
    expect(await levelAfter(texts as readonly string[])).toHaveProperty('opaque', true)
  })
})

describe('two looks in one transaction', () => {
  const sum = 'SELECT sum(v)::int AS s FROM t'
  const audit =
    (...before: readonly string[]): Flow =>
    (context) =>
      withOne(context, async (client) => {
        for (const text of before) await client.query(text)
        await client.query('BEGIN')
        const one = (await client.query(sum)).rows[0].s
        const two = (await client.query(sum)).rows[0].s
        await client.query('COMMIT')
        return { one, two }
      })
  const raise: Flow = ({ pool }) => pool.query('UPDATE t SET v = v + 1').then(() => undefined)
  const verdictOf = async (first: Flow): Promise<string> => {
    const { verdict } = await explore({
      url,
      onProgress: () => undefined,
      budget: { ms: 60_000 },
      seed: async ({ query }) => {
        await query('TRUNCATE t; INSERT INTO t VALUES (1, 0), (2, 0)')
      },
      flows: { audit: first, raise },
    })
    return verdict
  }

  test('differ after a SET that was rolled back', async () => {
    expect(await verdictOf(audit('BEGIN', repeatable, 'ROLLBACK'))).toBe('race')
  })

  test('do not after one that was committed', async () => {
    expect(await verdictOf(audit('BEGIN', repeatable, 'COMMIT'))).toBe('race-free')
  })

  test('are not proven alike where a function may have set the level', async () => {
    expect(await verdictOf(audit('SELECT raise_level()'))).toBe('bounded')
  })
})
