/** Claims on a table with row-level security, which also its owner is under: nobody gets a row of another tenant. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { optionsFor, tableText } from '../../support/claims-table.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import { newRole } from '../../support/schema-fixture.ts'

const fixture = pgFixture(`${tableText('job')};
  ALTER TABLE job ENABLE ROW LEVEL SECURITY;
  ALTER TABLE job FORCE ROW LEVEL SECURITY;
  CREATE POLICY own ON job USING (tenant = pg_catalog.current_setting('app.tenant'));
  CREATE POLICY fixed ON job AS RESTRICTIVE FOR UPDATE USING (rank < 9)`)
const pools: pg.Pool[] = []
const holdfasts: Record<string, Holdfast<pg.PoolClient>> = {}

beforeAll(async () => {
  const role = await newRole(fixture.observer, 'LOGIN')
  await fixture.observer.query(`ALTER TABLE job OWNER TO ${pg.escapeIdentifier(role)}`)
  await fixture.observer.query(`GRANT USAGE ON SCHEMA public TO ${pg.escapeIdentifier(role)}`)
  for (const tenant of ['a', 'b']) {
    const url = new URL(fixture.database.directUrl)
    url.username = encodeURIComponent(role)
    const options = `-c app.tenant=${tenant}`
    const pool = new pg.Pool({ connectionString: url.href, max: 4, options })
    pools.push(pool)
    holdfasts[tenant] = createHoldfast(fromPg(pool))
  }
})
afterAll(async () => void (await Promise.all(pools.map((pool) => pool.end()))))

const claimsOf = (tenant: 'a' | 'b') =>
  (holdfasts[tenant] as Holdfast<pg.PoolClient>).claims<{ id: string; tenant: string }>(
    optionsFor('job'),
  )

test('each tenant gets its own rows, and cannot finish or recover those of another', async () => {
  await fixture.observer.query(
    `INSERT INTO job (tenant) VALUES ('a'), ('b'), ('a'), ('b') RETURNING id`,
  )
  const [ofA, ofB] = [claimsOf('a'), claimsOf('b')]
  const got = await ofA.claim(10)
  expect(got.map(({ row }) => row.tenant)).toEqual(['a', 'a'])
  expect(await ofB.complete(got)).toMatchObject({ kept: [], lost: got })
  expect(await ofA.complete(got)).toMatchObject({ kept: got, lost: [] })
  await ofB.claim(10)
  await fixture.observer.query(`UPDATE job SET until = now() - interval '1 h' WHERE state = 'busy'`)
  expect(await ofA.recover()).toEqual({ freed: 0, dead: 0 })
  expect(await ofB.recover()).toEqual({ freed: 2, dead: 0 })
})

test('a row that a policy keeps from being changed is claimed by nobody, and stops nobody', async () => {
  await fixture.observer.query(`TRUNCATE job; INSERT INTO job (rank) VALUES (9), (1)`)
  expect((await claimsOf('a').claim(10)).map(({ row }) => row)).toMatchObject([{ rank: 1 }])
  expect(await claimsOf('a').claim(10)).toEqual([])
})
