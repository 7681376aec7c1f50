/** A table that is not there, lacks a column or may not be used: told by name, whatever is asked of it first. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Claims } from '../../../src/entries/claims.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, isHoldfastError } from '../../../src/index.ts'
import { claimsFixture, optionsFor } from '../../support/claims-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = claimsFixture()

type Asking = (claims: Claims<pg.PoolClient, unknown>, claimed: never) => Promise<unknown>

/** All that asks something of the caller's table. */
const methods: readonly (readonly [string, Asking])[] = [
  ['claim', (claims) => claims.claim(1)],
  ['claim in a transaction', async (claims) => claims.claim(await callerTransaction(fixture), 1)],
  ['heartbeat', (claims, claimed) => claims.heartbeat(claimed)],
  ['complete', (claims, claimed) => claims.complete(claimed)],
  [
    'complete in a transaction',
    async (claims, claimed) => claims.complete(await callerTransaction(fixture), claimed),
  ],
  ['fail', (claims, claimed) => claims.fail(claimed)],
  ['release', (claims, claimed) => claims.release(claimed)],
  ['recover', (claims) => claims.recover()],
  ['run', (claims) => claims.run({ handler: async () => undefined })],
  ['dead.list', (claims) => claims.dead.list()],
  ['dead.get', (claims) => claims.dead.get('1')],
  ['dead.retry', (claims) => claims.dead.retry('1')],
  ['dead.delete', (claims) => claims.dead.delete('1')],
]

async function refusal(asking: Promise<unknown>): Promise<{ code: string; about: string[] }> {
  try {
    await asking
  } catch (error) {
    if (!isHoldfastError(error, 'CLAIM_TABLE_UNFIT')) throw error
    return {
      code: error.message.split('): ')[0] as string,
      about: error.details.findings.map(({ code, object }) => `${code} ${object}`),
    }
  }
  throw new Error('it was not refused')
}

describe.each(methods)('%s', (_, ask) => {
  test('a column that is not there is named', async () => {
    const { name, claims } = await fixture.table(1)
    const claimed = (await claims.claim(1)) as never
    await fixture.observer.query(`ALTER TABLE ${name} DROP COLUMN state`)
    expect(await refusal(ask(claims, claimed))).toEqual({
      code: `CLAIM_TABLE_UNFIT (${name}: column ${name}.state is not there`,
      about: [`column-missing column ${name}.state`],
    })
  })

  test('so is a table that is not', async () => {
    const { name, claims } = await fixture.table(1)
    const claimed = (await claims.claim(1)) as never
    await fixture.observer.query(`DROP TABLE ${name}`)
    expect(await refusal(ask(claims, claimed))).toEqual({
      code: `CLAIM_TABLE_UNFIT (${name}: table ${name} is not there, or not in the search_path of this role`,
      about: [`table-missing table ${name}`],
    })
  })
})

describe('a role', () => {
  let pool: pg.Pool
  let hf: Holdfast<pg.PoolClient>
  let role: string
  beforeAll(async () => {
    const { rows } = await fixture.observer.query<{ name: string }>(
      'SELECT current_database() AS name',
    )
    role = `small_${rows[0]?.name}`
    await fixture.observer.query(`CREATE ROLE "${role}" LOGIN`)
    const url = new URL(fixture.database.directUrl)
    url.username = role
    pool = new pg.Pool({ connectionString: url.href })
    hf = createHoldfast(fromPg(pool))
  })
  afterAll(async () => {
    await pool.end()
    await fixture.observer.query(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`)
  })

  test('that may only read is told what it may not, and the GRANT works', async () => {
    const { name } = await fixture.table(2)
    await fixture.observer.query(`GRANT SELECT ON ${name} TO "${role}"`)
    const claims = hf.claims(optionsFor(name))
    const finding = {
      code: 'privilege-missing',
      object: `table ${name}`,
      what: expect.stringContaining(
        `does not let the role ${role} update state, due, tries, token`,
      ),
      fix: `GRANT SELECT, UPDATE ON "${name}" TO "${role}";`,
    }
    expect(await claims.check()).toEqual([finding])
    const asking = [() => claims.claim(1), () => claims.recover(), () => claims.dead.retry('1')]
    for (const ask of asking) {
      await expect(ask()).rejects.toMatchObject({
        code: 'CLAIM_TABLE_UNFIT',
        details: { subject: name, findings: [finding] },
      })
    }
    await fixture.observer.query(finding.fix)
    expect(await claims.check()).toEqual([])
    expect(await claims.complete(await claims.claim(2))).toMatchObject({ lost: [] })
  })

  test('needs no more than the columns it uses, and DELETE to delete', async () => {
    const { name } = await fixture.table(1)
    await fixture.observer.query(
      `GRANT SELECT (id, state, token, until, tries, due, why, owner),
             UPDATE (state, token, until, tries, due, why, owner) ON ${name} TO "${role}"`,
    )
    const claims = hf.claims({ ...optionsFor(name), select: ['id'] })
    expect(await claims.check()).toEqual([])
    const claimed = await claims.claim(1)
    expect(claimed).toHaveLength(1)
    const deleting = hf.claims({ ...optionsFor(name), select: ['id'], deleteDone: true })
    await expect(deleting.complete(claimed)).rejects.toMatchObject({
      details: { findings: [{ fix: `GRANT SELECT, UPDATE, DELETE ON "${name}" TO "${role}";` }] },
    })
    const whole = hf.claims(optionsFor(name))
    await expect(whole.claim(1)).rejects.toMatchObject({
      details: { findings: [{ what: expect.stringContaining('read tenant, rank') }] },
    })
  })

  test('without the schema of the table is told so', async () => {
    await fixture.observer.query(`CREATE SCHEMA apart; CREATE TABLE apart.job (id int)`)
    const claims = hf.claims({ table: { schema: 'apart', table: 'job' } })
    const finding = {
      code: 'table-missing',
      fix: 'Create it, or let this role use its schema: GRANT USAGE ON SCHEMA "apart".',
    }
    expect(await claims.check()).toMatchObject([finding])
    await expect(claims.claim(1)).rejects.toMatchObject({ details: { findings: [finding] } })
  })
})

describe('what is not the table', () => {
  test('a trigger that fails with the same SQLSTATE is told as that', async () => {
    const { name, claims } = await fixture.table(1)
    await fixture.observer.query(`
      CREATE FUNCTION ${name}_audit() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO nowhere VALUES (1); RETURN NEW; END $$;
      CREATE TRIGGER audit BEFORE UPDATE ON ${name} FOR EACH ROW EXECUTE FUNCTION ${name}_audit()`)
    await expect(claims.claim(1)).rejects.toMatchObject({ code: '42P01' })
  })

  test('a full pool does not hide it', async () => {
    const { name } = await fixture.table(1)
    await fixture.observer.query(`ALTER TABLE ${name} DROP COLUMN until`)
    const pool = new pg.Pool({ connectionString: fixture.database.directUrl, max: 1 })
    const alone = createHoldfast(fromPg(pool))
    const asking = alone.transaction(
      async (tx) => await alone.claims(optionsFor(name)).claim(tx, 1),
    )
    await expect(asking).rejects.toMatchObject({
      code: 'CLAIM_TABLE_UNFIT',
      details: { subject: name, findings: [{ code: 'column-missing', object: `table ${name}` }] },
    })
    await pool.end()
  })
})

describe("mode: 'transaction'", () => {
  const options = { mode: 'transaction', columns: { status: 'state' } } as const

  test('names what the table lacks', async () => {
    const { name } = await fixture.table(1)
    const misnamed = fixture.hf.claims({ ...options, table: name })
    const claims = fixture.hf.claims({
      ...options,
      table: name,
      values: { pending: 'new', done: 'ok' },
    })
    const taken = await claims.take(await callerTransaction(fixture), 1)
    const wrong = fixture.hf.claims({ mode: 'transaction', table: name })
    for (const ask of [
      async () => await wrong.take(await callerTransaction(fixture), 1),
      async () => await wrong.finish(await callerTransaction(fixture), taken),
    ]) {
      expect(await refusal(ask())).toEqual({
        code: `CLAIM_TABLE_UNFIT (${name}: column ${name}.status is not there`,
        about: [`column-missing column ${name}.status`],
      })
    }
    // A value that the column cannot have is another mistake, which PostgreSQL names.
    const pending = misnamed.take(await callerTransaction(fixture), 1)
    await expect(pending).rejects.toMatchObject({ code: '22P02' })
  })
})

describe('a queue in the table work', () => {
  test.each(['claim', 'recover'] as const)('without it: %s says what to run', async (verb) => {
    const work = fixture.hf.work({ queue: 'emails', schema: 'not_here' })
    await expect(work[verb]()).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })
})
