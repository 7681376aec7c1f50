/** Whoever may create in a schema that others look into cannot make an administrator run their code. */
import { randomBytes } from 'node:crypto'
import { createDatabase, withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { examine } from '../../../src/health/index.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { inspect, migrate } from '../../../src/schema/index.ts'

const mallory = `mallory_${randomBytes(4).toString('hex')}`

/** Operators that fit better than PostgreSQL's own where these would convert a number. Their code makes her a superuser. */
const operators = (['*', '+', '-', '/', '=', '<', '>'] as const)
  .flatMap((sign) => [
    [sign, 'int4', 'numeric'],
    [sign, 'numeric', 'int4'],
    [sign, 'int8', 'numeric'],
    [sign, 'float8', 'interval'],
  ])
  .map(
    ([sign, left, right], at) => `
CREATE FUNCTION public.grab_${at}(a ${left}, b ${right}) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    ALTER ROLE ${mallory} SUPERUSER;
  END IF;
  RETURN 1;
END $$;
CREATE OPERATOR public.${sign} (leftarg = ${left}, rightarg = ${right}, function = public.grab_${at});`,
  )

let url: string
let pool: pg.Pool
let hf: Holdfast<pg.PoolClient>

const isSuper = async (): Promise<boolean> => {
  const { rows } = await pool.query<{ rolsuper: boolean }>(
    'SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = $1',
    [mallory],
  )
  return rows[0]?.rolsuper ?? false
}

beforeAll(async () => {
  url = await createDatabase(inject('postgresUrl'))
  pool = new pg.Pool({ connectionString: url, max: 4 })
  hf = createHoldfast(fromPg(pool))
  // As in every database that was made before PostgreSQL 15.
  await pool.query(`CREATE ROLE ${mallory} LOGIN; GRANT CREATE ON SCHEMA public TO PUBLIC`)
  await withClient(url, async (client) => {
    await client.query(`SET SESSION AUTHORIZATION ${mallory}`)
    await client.query(operators.join('\n'))
  })
})
afterAll(async () => {
  await pool.query(`DROP OWNED BY ${mallory}`)
  await pool.query(`DROP ROLE ${mallory}`)
  await pool.end()
})

test('S1: who looks, examines, installs and works runs nobody else’s operators', async () => {
  const driver = fromPg(pool)
  await migrate(driver)
  const other = createHoldfast(fromPg(pool))
  await hf.guard(lockKey('cart', 1), async () => {
    expect((await other.observe.locks()).sessions).toHaveLength(1)
    await expect(
      other.guard(lockKey('cart', 1), async () => undefined, { wait: 50 }),
    ).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
  })
  const quota = hf.quota({ name: 'calls', limit: 3, per: 'day' })
  await quota.consume('k', 1, { operationId: 'a' })
  await hf.leases.acquire('n')
  await hf.ledger.maintain()
  await hf.observe.transactions()
  await hf.observe.books()
  await hf.observe.account({ book: 'calls', key: 'k' })
  await hf.observe.holds()
  await hf.observe.leases()
  await hf.observe.schedules()
  await hf.observe.claims()
  await hf.observe.lockMinutes()
  await examine(driver)
  await inspect(driver)
  expect(await isSuper()).toBe(false)
})

test('control: an administrator who writes such an expression makes her a superuser', async () => {
  await pool.query('SELECT 1000 * extract(epoch FROM now())')
  expect(await isSuper()).toBe(true)
  await pool.query(`ALTER ROLE ${mallory} NOSUPERUSER`)
})
