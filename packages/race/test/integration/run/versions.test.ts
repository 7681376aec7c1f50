import { type PostgresServer, sample, startPostgres, withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow } from '../../../src/run/options.ts'
import { script } from '../../support/script.ts'

const flows = ['alice', 'bob']

/** The same on every version: an order, a split commit, a wait, a deadlock, a crash. */
describe.each(sample([15, 16, 17, 18] as const))('PostgreSQL %i', (version) => {
  let server: PostgresServer
  let url: string
  beforeAll(async () => {
    server = await startPostgres({ version })
    url = await server.createDatabase()
    await withClient(url, (client) =>
      client.query(`
        CREATE TABLE accounts (id int PRIMARY KEY, balance int);
        CREATE TABLE claims (key text);
      `),
    )
  })
  afterAll(() => server.stop('immediate'))

  async function play(flow: (first: boolean) => Flow, order: string) {
    await using runner = await createRunner({
      url,
      flows: { alice: flow(true), bob: flow(false) },
      seed: async ({ query }) => {
        await query('TRUNCATE accounts, claims')
        await query('INSERT INTO accounts VALUES (1, 100), (2, 100)')
      },
    })
    expect(runner.server).toBe(`PostgreSQL ${runner.server.split(' ')[1]}`)
    expect(runner.server).toContain(String(version))
    return await runner.run(script(flows, order))
  }

  test('a race inside one statement', async () => {
    const claim = `INSERT INTO claims SELECT 'k' WHERE NOT EXISTS (SELECT FROM claims)`
    const run = await play(
      () =>
        ({ pool }) =>
          pool.query(claim),
      'alice bob alice bob',
    )
    expect(run.tables.find(({ name }) => name === 'public.claims')?.rows).toHaveLength(2)
  })

  const transfer =
    (first: boolean): Flow =>
    async ({ pool }) => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await client.query('UPDATE accounts SET balance = 0 WHERE id = $1', [first ? 1 : 2])
        await client.query('UPDATE accounts SET balance = 0 WHERE id = $1', [first ? 2 : 1])
        await client.query('COMMIT')
      } finally {
        client.release()
      }
    }

  test('a wait, and a deadlock with a chosen victim', async () => {
    const run = await play(transfer, 'alice alice bob bob alice bob bob')
    expect(run.steps[4]).toMatchObject({ flow: 0, waitedFor: [1], resumedAfter: 6 })
    expect(run.outcomes).toMatchObject([{ kind: 'returned' }, { sqlstate: '40P01' }])
  })

  test('a crash', async () => {
    const run = await play(transfer, 'alice alice bob bob alice bob!')
    expect(run.outcomes).toMatchObject([{ kind: 'returned' }, { kind: 'crashed' }])
  })
})
