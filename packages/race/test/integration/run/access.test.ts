import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type PostgresServer, startPostgres, withClient } from '@holdfast/testkit'
import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow } from '../../../src/run/options.ts'
import { script } from '../../support/script.ts'

/** A server that wants a password and TLS, and limits how long anything may take. */
let server: PostgresServer
let url: string
beforeAll(async () => {
  server = await startPostgres()
  const own = new URL(await server.createDatabase())
  await withClient(own.href, async (client) => {
    await client.query(`
      CREATE TABLE accounts (id int PRIMARY KEY, balance int);
      CREATE ROLE shop LOGIN PASSWORD 's3cr:t/@';
      GRANT ALL ON accounts TO shop;
      ALTER ROLE shop SET statement_timeout = '100ms';
      ALTER ROLE shop SET lock_timeout = '100ms';
      ALTER ROLE shop SET idle_in_transaction_session_timeout = '100ms';
    `)
    await client.query(`COPY (SELECT 1) TO PROGRAM
      'openssl req -new -x509 -nodes -subj /CN=localhost -keyout server.key -out server.crt'`)
    await client.query(`ALTER SYSTEM SET ssl = on`)
    const file = join(server.dataDir, 'pg_hba.conf')
    const rules = await readFile(file, 'utf8')
    await writeFile(file, `hostssl all shop all scram-sha-256\nhost all shop all reject\n${rules}`)
    await client.query('SELECT pg_reload_conf()')
  })
  own.username = 'shop'
  own.password = encodeURIComponent('s3cr:t/@')
  own.searchParams.set('sslmode', 'no-verify')
  own.searchParams.set('application_name', 'shop')
  url = own.href
})
afterAll(() => server.stop('immediate'))

test('password, TLS and time limits are no obstacle, for new sessions after a crash neither', async () => {
  const pools = new Map<string, Pool>()
  const flow: Flow = async (context) => {
    const pool = pools.get(context.flow) ?? new Pool({ connectionString: context.url })
    pools.set(context.flow, pool)
    const client = await (context.flow === 'alice' ? pool : context.pool).connect()
    try {
      await client.query('BEGIN')
      const { rows } = await client.query(`SELECT current_setting('application_name') AS name`)
      await client.query('UPDATE accounts SET balance = balance + 1 WHERE id = 1')
      await context.step('a long call')
      await client.query('COMMIT')
      return rows[0].name
    } finally {
      client.release()
    }
  }
  const runner = await createRunner({
    url,
    flows: { alice: flow, bob: flow },
    seed: async ({ query }) => {
      await query('DELETE FROM accounts')
      await query('INSERT INTO accounts VALUES (1, 0)')
    },
  })
  const flows = ['alice', 'bob']
  const decide = script(flows, 'alice alice alice bob bob bob')
  const run = await runner.run((decision, steps) => {
    // Longer than the limits: the one that waits and the one that holds must both survive.
    const start = performance.now()
    while (steps.length === 6 && performance.now() - start < 250);
    return decide(decision, steps)
  })
  expect(run.trouble).toBeUndefined()
  expect(run.steps[5]).toMatchObject({ flow: 1, waitedFor: [0] })
  expect(run.outcomes).toMatchObject([{ value: '"shop"' }, { value: '"shop"' }])
  for (const order of ['alice alice alice!', 'bob bob bob!', '']) {
    const next = await runner.run(script(flows, order))
    const crashed = order.split(' ')[0] ?? ''
    next.outcomes.forEach((outcome, index) => {
      expect(outcome).toMatchObject(
        flows[index] === crashed ? { kind: 'crashed' } : { value: '"shop"' },
      )
    })
  }
  for (const pool of pools.values()) await pool.end()
  await runner.close()
})
