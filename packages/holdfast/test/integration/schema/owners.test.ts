/** One role owns the schema and everything in it, whoever made it. */
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { grants, inspect, migrate, plan } from '../../../src/schema/index.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import { newRole, newSchema, quoted } from '../../support/schema-fixture.ts'

const fixture = pgFixture()

interface Owned {
  readonly schema: string
  readonly owner: string
  /** Connected as the owner, who is no superuser. */
  readonly driver: Driver<pg.PoolClient>
}

/** An empty schema of a role of its own. */
async function emptySchema(): Promise<Owned> {
  const owner = await newRole(fixture.observer, 'LOGIN')
  const schema = newSchema()
  await fixture.observer.query(`CREATE SCHEMA ${quoted(schema)} AUTHORIZATION ${quoted(owner)}`)
  const url = new URL(fixture.database.directUrl)
  url.username = encodeURIComponent(owner)
  const pool = new pg.Pool({ connectionString: url.href, max: 2 })
  onTestFinished(() => pool.end())
  return { schema, owner, driver: fromPg(pool) }
}

async function installed(): Promise<Owned> {
  const owned = await emptySchema()
  await migrate(owned.driver, { schema: owned.schema })
  return owned
}

const superuser = (): Driver<pg.PoolClient> => fromPg(fixture.observer)

/** Who owns something in it. */
async function ownersIn(schema: string): Promise<string[]> {
  const { rows } = await fixture.observer.query<{ owner: string }>(
    `SELECT DISTINCT pg_get_userbyid(owner) AS owner FROM (
       SELECT relowner AS owner FROM pg_class WHERE relnamespace = $1::regnamespace
       UNION ALL SELECT proowner FROM pg_proc WHERE pronamespace = $1::regnamespace) AS all_of_it`,
    [quoted(schema)],
  )
  return rows.map(({ owner }) => owner)
}

describe('what a superuser makes belongs to the owner of the schema:', () => {
  test('an installation', async () => {
    const { schema, owner, driver } = await emptySchema()
    await migrate(superuser(), { schema })
    expect(await ownersIn(schema)).toEqual([owner])
    expect(await inspect(driver, { schema })).toEqual([])
    expect(await migrate(driver, { schema, repair: true })).toMatchObject({ notes: [] })
  })

  test('a plan', async () => {
    const { schema, owner } = await emptySchema()
    await fixture.observer.query(plan({ schema }))
    expect(await ownersIn(schema)).toEqual([owner])
  })

  test('months', async () => {
    const { schema, owner } = await installed()
    const { rows } = await fixture.observer.query(
      `SELECT ${quoted(schema)}.extend_partitions(15) AS made`,
    )
    expect(rows).toEqual([{ made: 3 }])
    expect(await ownersIn(schema)).toEqual([owner])
  })

  test('a function and a view that were missing', async () => {
    const { schema, owner, driver } = await installed()
    await fixture.observer.query(
      `DROP FUNCTION ${quoted(schema)}.release_lease; DROP VIEW ${quoted(schema)}.leases`,
    )
    await migrate(superuser(), { schema, repair: true })
    expect(await ownersIn(schema)).toEqual([owner])
    await migrate(driver, { schema, repair: true })
  })
})

describe('an object of another role', () => {
  test.each([
    ['FUNCTION', 'acquire_lease', /^function acquire_lease\(/],
    ['TABLE', 'balance', /^table balance$/],
    ['TABLE', 'movement_default', /^table movement_default$/],
    ['VIEW', 'leases', /^view leases$/],
  ])('is found, a %s %s, and given back by what doctor prints', async (kind, name, object) => {
    const { schema, owner, driver } = await installed()
    const other = await newRole(fixture.observer)
    await fixture.observer.query(
      `ALTER ${kind} ${quoted(schema)}.${name} OWNER TO ${quoted(other)}`,
    )
    const found = await inspect(driver, { schema })
    expect(found).toMatchObject([
      {
        code: 'object-owner',
        object: expect.stringMatching(object),
        what: expect.stringContaining(`belongs to ${other} instead of ${owner}`),
      },
    ])
    await fixture.observer.query(found[0]?.fix as string)
    expect(await inspect(driver, { schema })).toEqual([])
    expect(await ownersIn(schema)).toEqual([owner])
  })

  test('is given back by a repair that may, and named by one that may not', async () => {
    const { schema, owner, driver } = await installed()
    const other = await newRole(fixture.observer)
    await fixture.observer.query(`ALTER TABLE ${quoted(schema)}.balance OWNER TO ${quoted(other)}`)
    const { notes } = await migrate(driver, { schema, repair: true })
    expect(notes).toEqual([expect.stringContaining(`table balance (${other})`)])
    expect(await migrate(superuser(), { schema, repair: true })).toMatchObject({ notes: [] })
    expect(await ownersIn(schema)).toEqual([owner])
  })

  test('can be the schema itself: one finding, not one for everything in it', async () => {
    const { schema, owner, driver } = await installed()
    const other = await newRole(fixture.observer)
    await fixture.observer.query(`GRANT ALL ON SCHEMA ${quoted(schema)} TO ${quoted(owner)}`)
    await fixture.observer.query(`ALTER SCHEMA ${quoted(schema)} OWNER TO ${quoted(other)}`)
    const found = (await inspect(superuser(), { schema })).filter(
      ({ code }) => code === 'object-owner',
    )
    expect(found).toMatchObject([{ object: 'schema' }])
    await fixture.observer.query(found[0]?.fix as string)
    expect(await inspect(driver, { schema })).toEqual([])
  })

  test('is never given to a superuser', async () => {
    const { schema, owner } = await installed()
    await fixture.observer.query(`ALTER SCHEMA ${quoted(schema)} OWNER TO CURRENT_USER`)
    await fixture.observer.query(`SELECT ${quoted(schema)}.extend_partitions(15)`)
    await migrate(superuser(), { schema, repair: true })
    expect(await ownersIn(schema)).toEqual([owner])
    expect(await inspect(superuser(), { schema })).toMatchObject([
      {
        code: 'object-owner',
        object: 'schema',
        fix: expect.stringContaining(`OWNER TO ${quoted(owner)};`),
      },
    ])
  })

  test('is given back to a superuser who installed', async () => {
    const schema = newSchema()
    await migrate(superuser(), { schema })
    const before = await ownersIn(schema)
    const other = await newRole(fixture.observer)
    await fixture.observer.query(`ALTER TABLE ${quoted(schema)}.balance OWNER TO ${quoted(other)}`)
    await migrate(superuser(), { schema, repair: true })
    expect(await ownersIn(schema)).toEqual(before)
  })
})

test('an application works in a schema that a superuser installed and maintains', async () => {
  const { schema } = await emptySchema()
  await migrate(superuser(), { schema })
  await fixture.observer.query(`SELECT ${quoted(schema)}.extend_partitions(15)`)
  const role = await newRole(fixture.observer, 'LOGIN')
  await fixture.observer.query(grants({ schema, role }))
  const url = new URL(fixture.database.directUrl)
  url.username = encodeURIComponent(role)
  const pool = new pg.Pool({ connectionString: url.href, max: 2 })
  onTestFinished(() => pool.end())
  const lease = await createHoldfast(fromPg(pool), { schema }).leases.acquire('one', { ttl: '5s' })
  expect(lease).toBeDefined()
})
