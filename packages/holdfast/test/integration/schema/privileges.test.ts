/** What an application's role gets, and what it must not have. */
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { Finding } from '../../../src/schema/finding.ts'
import { grantsOfFiles } from '../../../src/schema/grants.ts'
import { inspectFiles } from '../../../src/schema/inspect.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import { catalogueOf, newRole, newSchema, notes, quoted } from '../../support/schema-fixture.ts'

const fixture = pgFixture()

interface Place {
  readonly schema: string
  readonly role: string
  look(): Promise<readonly Finding[]>
  /** Runs as the role and gives the first value. */
  as(sql: string): Promise<unknown>
}

async function place(granted = true, attributes = ''): Promise<Place> {
  const driver = fromPg(fixture.pool)
  const schema = newSchema()
  await migrateFiles(driver, notes, { schema })
  const role = await newRole(fixture.observer, attributes)
  if (granted) await fixture.observer.query(grantsOfFiles(notes, { schema, role }))
  return {
    schema,
    role,
    look: async () =>
      inspectFiles(driver, notes, await catalogueOf(driver, schema), { schema, role }),
    async as(sql) {
      const client = await fixture.observer.connect()
      try {
        await client.query('BEGIN')
        await client.query(`SET LOCAL ROLE ${quoted(role)}`)
        return Object.values((await client.query(sql)).rows[0] ?? {})[0]
      } finally {
        await client.query('ROLLBACK')
        client.release()
      }
    },
  }
}

const denied = expect.objectContaining({ code: '42501' })

describe('grants', () => {
  test('are exactly these', () => {
    expect(grantsOfFiles(notes, { role: 'a"pp', schema: 'no"tes' })).toBe(
      [
        'GRANT USAGE ON SCHEMA "no""tes" TO "a""pp";',
        'GRANT EXECUTE ON FUNCTION "no""tes"."add_note" TO "a""pp";',
        'GRANT SELECT ON TABLE "no""tes"."notes" TO "a""pp";',
        '',
      ].join('\n'),
    )
    expect(grantsOfFiles(notes, { role: 'app' })).toContain('ON SCHEMA "holdfast" TO "app"')
  })

  test.each(['', 'a\0b'])('are refused for the role %j', (role) => {
    expect(() => grantsOfFiles(notes, { role })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })

  test('suffice, and open nothing else', async () => {
    const { schema, role, as, look } = await place()
    const s = quoted(schema)
    expect(await as(`SELECT ${s}.add_note(1, 'x')`)).toBe('x;')
    expect(await as(`SELECT count(*)::int FROM ${s}.notes`)).toBe(0)
    for (const sql of [
      `SELECT * FROM ${s}.note`,
      `INSERT INTO ${s}.note (bucket, id) VALUES (0, 1)`,
      `UPDATE ${s}.notes SET id = 1`,
      `SELECT ${s}.tidy()`,
      `SELECT ${s}.a_label('x')`,
      `SELECT * FROM ${s}.installed_file`,
      `CREATE TABLE ${s}.mine ()`,
    ]) {
      await expect(as(sql)).rejects.toEqual(denied)
    }
    expect(await look()).toEqual([])
    expect(role).not.toBe('')
  })

  test('are what makes the difference: the control', async () => {
    const { schema, as } = await place(false)
    await expect(as(`SELECT ${quoted(schema)}.add_note(1, 'x')`)).rejects.toEqual(denied)
  })
})

describe('inspect with a role', () => {
  test('finds what it lacks, and says how to give it', async () => {
    const { look } = await place(false)
    const found = await look()
    expect(found.map(({ code, object }) => [code, object])).toEqual([
      ['role-privilege-missing', 'function add_note'],
      ['role-privilege-missing', 'schema'],
      ['role-privilege-missing', 'view notes'],
    ])
    for (const { fix } of found) await fixture.observer.query(fix)
    expect(await look()).toEqual([])
  })

  test.each([
    ['SELECT ON TABLE S.note', 'table note'],
    ['TRUNCATE ON TABLE S.log', 'table log'],
    ['INSERT ON TABLE S.log_default', 'table log_default'],
    ['UPDATE (body) ON TABLE S.note', 'column note.body'],
    ['INSERT, SELECT ON TABLE S.notes', 'view notes'],
    ['EXECUTE ON FUNCTION S.tidy', 'function tidy()'],
    ['EXECUTE ON FUNCTION S.b_trim', 'function b_trim(text)'],
    ['CREATE ON SCHEMA S', 'schema'],
  ])('finds that it has %s', async (privilege, object) => {
    const { schema, role, look } = await place()
    const given = privilege.replace(/\bS\b/, () => quoted(schema))
    await fixture.observer.query(`GRANT ${given} TO ${quoted(role)}`)
    const found = await look()
    expect(found).toMatchObject([{ code: 'role-privilege-extra', object }])
    await fixture.observer.query((found[0] as Finding).fix)
    expect(await look()).toEqual([])
  })

  test.each(['', 'NOINHERIT'])('finds what it has through another role: %s', async (attributes) => {
    const { schema, role, look } = await place(true, attributes)
    const group = await newRole(fixture.observer)
    await fixture.observer.query(`GRANT DELETE ON ${quoted(schema)}.note TO ${quoted(group)}`)
    expect(await look()).toEqual([])
    await fixture.observer.query(`GRANT ${quoted(group)} TO ${quoted(role)}`)
    const found = await look()
    expect(found).toMatchObject([{ code: 'role-privilege-extra', object: 'table note' }])
    await fixture.observer.query((found[0] as Finding).fix)
    expect(await look()).toEqual([])
  })

  test('finds that it is a superuser, the owner, or a member of the owner', async () => {
    expect(await (await place(true, 'SUPERUSER')).look()).toMatchObject([{ code: 'role-owner' }])
    const { schema, role, look } = await place()
    await fixture.observer.query(`ALTER TABLE ${quoted(schema)}.note OWNER TO ${quoted(role)}`)
    expect(await look()).toMatchObject([{ code: 'role-owner', object: `role ${role}` }])
    const group = await newRole(fixture.observer)
    await fixture.observer.query(`ALTER TABLE ${quoted(schema)}.note OWNER TO ${quoted(group)}`)
    expect(await look()).toEqual([])
    await fixture.observer.query(`GRANT ${quoted(group)} TO ${quoted(role)}`)
    expect(await look()).toMatchObject([{ code: 'role-owner' }])
  })

  test('finds that it does not exist', async () => {
    const { schema } = await place()
    const driver = fromPg(fixture.pool)
    const expected = await catalogueOf(driver, schema)
    const look = (role: string): Promise<readonly Finding[]> =>
      inspectFiles(driver, notes, expected, { schema, role })
    expect(await look('nobody')).toMatchObject([{ code: 'role-missing', object: 'role nobody' }])
    await expect(look('')).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})
