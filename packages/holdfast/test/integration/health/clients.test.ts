/** The same look through every client. */
import { type PostgresServer, sample } from '@holdfast/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { examine } from '../../../src/health/index.ts'
import { everyClient } from '../../support/every-client.ts'
import { type HealthyPlace, healthyPlace, healthyServer } from './healthy-place.ts'

let server: PostgresServer
let place: HealthyPlace

beforeAll(async () => {
  server = await healthyServer()
  place = await healthyPlace(server)
})
afterAll(async () => {
  await place.close()
  await server.stop('immediate')
})

test.each(sample(Object.entries(everyClient)))('%s', async (_, open) => {
  const { driver, end } = await open(place.url)
  try {
    const look = async (): Promise<string[]> =>
      (await examine(driver, { role: 'app' })).map(({ code }) => code)
    expect(await look()).toEqual([])
    await place.run(`ALTER ROLE app RESET statement_timeout; GRANT pg_write_all_data TO app;
      ALTER ROLE app SET synchronous_commit = off;
      ALTER TABLE holdfast.work SET (autovacuum_enabled = off)`)
    expect(await look()).toEqual([
      'autovacuum-off',
      'commits-not-durable',
      'statement-timeout-unset',
      'role-writes-all',
    ])
    for (const { fix } of await examine(driver, { role: 'app' })) await place.run(fix)
    expect(await look()).toEqual([])
  } finally {
    await end()
  }
})
