/** What an application's role gets, and what it must not have. */
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { Finding } from '../../../src/schema/finding.ts'
import { grants, grantsOfFiles } from '../../../src/schema/grants.ts'
import { inspect, inspectFiles } from '../../../src/schema/inspect.ts'
import { migrate, migrateFiles } from '../../../src/schema/migrate.ts'
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
    const [first, ...rest] = grantsOfFiles(notes, { role: 'a"pp', schema: 'no"tes' }).split(
      /(?<=END \$.*;\n)/,
    )
    expect(first).toMatch(/^DO \$/)
    expect(rest.join('')).toBe(
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

  describe.each([
    ['one role', 'SELECT ON TABLE S.note', 'SELECT ON TABLE S.note', 1],
    ['a chain of roles', 'SELECT ON TABLE S.note', 'SELECT ON TABLE S.note', 3],
    ['a column', 'UPDATE (body) ON TABLE S.note', 'UPDATE (body) ON TABLE S.note', 1],
    ['a column of a table', 'SELECT ON TABLE S.note', 'SELECT (body) ON TABLE S.note', 2],
    ['a function', 'EXECUTE ON FUNCTION S.tidy', 'EXECUTE ON FUNCTION S.tidy', 1],
    ['the schema', 'CREATE ON SCHEMA S', 'CREATE ON SCHEMA S', 1],
  ] as const)('what another role passed on: %s', (_, passable, passed, length) => {
    /** From the owner to the first role, and from each to the next, to the application's at last. */
    async function passedOn(to?: string): Promise<Place> {
      const there = await place()
      const s = (text: string): string => text.replace(/\bS\b/, () => quoted(there.schema))
      let by = ''
      for (let n = 1; n <= length; n += 1) {
        const next = await newRole(fixture.observer)
        await fixture.observer.query(
          `GRANT USAGE ON SCHEMA ${quoted(there.schema)} TO ${quoted(next)}`,
        )
        await fixture.observer.query(
          `${by} GRANT ${s(passable)} TO ${quoted(next)} WITH GRANT OPTION; RESET ROLE`,
        )
        by = `SET ROLE ${quoted(next)};`
      }
      await fixture.observer.query(
        `${by} GRANT ${s(passed)} TO ${to ?? quoted(there.role)}; RESET ROLE`,
      )
      // Whoever may create something in the schema is told too, and is not what this is about.
      const ofOthers = ({ what }: Finding): boolean => what.startsWith('the role role ')
      return { ...there, look: async () => (await there.look()).filter((one) => !ofOthers(one)) }
    }

    test('is taken back by what inspect prints', async () => {
      const { look } = await passedOn()
      const found = await look()
      expect(found).toMatchObject([{ code: 'role-privilege-extra' }])
      await fixture.observer.query((found[0] as Finding).fix)
      expect(await look()).toEqual([])
    })

    test('is taken back by grants', async () => {
      const { schema, role, look } = await passedOn()
      await fixture.observer.query(grantsOfFiles(notes, { schema, role }))
      expect(await look()).toEqual([])
    })

    test('is taken back from everyone', async () => {
      const { look } = await passedOn('PUBLIC')
      const found = await look()
      expect(found).toMatchObject([{ code: 'public-privilege' }])
      await fixture.observer.query((found[0] as Finding).fix)
      expect(await look()).toEqual([])
    })
  })

  test('takes back what it has passed on itself', async () => {
    const { schema, role, look } = await place()
    const other = await newRole(fixture.observer)
    await fixture.observer.query(
      `GRANT DELETE ON ${quoted(schema)}.note TO ${quoted(role)} WITH GRANT OPTION; SET ROLE ${quoted(role)};
       GRANT DELETE ON ${quoted(schema)}.note TO ${quoted(other)}; RESET ROLE`,
    )
    await fixture.observer.query((await look())[0]?.fix as string)
    expect(await look()).toEqual([])
  })

  test('finds that it is a superuser, the owner, or a member of the owner', async () => {
    expect(await (await place(true, 'SUPERUSER')).look()).toMatchObject([{ code: 'role-owner' }])
    const { schema, role, look } = await place()
    await fixture.observer.query(`ALTER TABLE ${quoted(schema)}.note OWNER TO ${quoted(role)}`)
    expect(await look()).toMatchObject([
      {
        code: 'role-owner',
        object: `role ${role}`,
        what: expect.stringMatching(/^owns table note: /),
        fix: expect.stringMatching(
          /^ALTER TABLE .*\.note OWNER TO .*; then run what `holdfast grants`/,
        ),
      },
    ])
    const group = await newRole(fixture.observer)
    await fixture.observer.query(`ALTER TABLE ${quoted(schema)}.note OWNER TO ${quoted(group)}`)
    expect(await look()).toMatchObject([{ code: 'object-owner', object: 'table note' }])
    await fixture.observer.query(`GRANT ${quoted(group)} TO ${quoted(role)}`)
    expect(await look()).toMatchObject([{ code: 'object-owner' }, { code: 'role-owner' }])
  })

  test.each(['', 'NOINHERIT'])(
    'tells a member of the owner to leave it: %s',
    async (attributes) => {
      const { schema, role, look } = await place(true, attributes)
      const [owner, between] = [await newRole(fixture.observer), await newRole(fixture.observer)]
      await fixture.observer.query(`ALTER SCHEMA ${quoted(schema)} OWNER TO ${quoted(owner)}`)
      for (const { fix } of await look()) await fixture.observer.query(fix)
      expect(await look()).toEqual([])
      await fixture.observer.query(`ALTER SCHEMA ${quoted(schema)} OWNER TO ${quoted(owner)}`)
      await migrateFiles(fromPg(fixture.pool), notes, { schema, repair: true })
      expect(await look()).toEqual([])
      await fixture.observer.query(
        `GRANT ${quoted(owner)} TO ${quoted(role)}, ${quoted(between)}; GRANT ${quoted(between)} TO ${quoted(role)}`,
      )
      const found = await look()
      expect(found.map(({ code }) => code)).toEqual(['role-owner', 'role-owner'])
      expect(found.map(({ fix }) => fix).toSorted()).toEqual(
        [between, role].map((from) => `REVOKE ${quoted(owner)} FROM ${quoted(from)};`).toSorted(),
      )
      for (const { fix } of found) await fixture.observer.query(fix)
      expect(await look()).toEqual([])
    },
  )

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

describe('S12: default privileges', () => {
  const driver = () => fromPg(fixture.pool)

  /** A schema made by the tests' own role, with these default privileges for whoever `to` is. */
  async function made(to: (role: string) => string, granted = true): Promise<Place> {
    const schema = newSchema()
    const role = await newRole(fixture.observer)
    const change = async (verb: string, by: 'TO' | 'FROM'): Promise<void> => {
      for (const kind of ['TABLES', 'SEQUENCES', 'ROUTINES', 'SCHEMAS']) {
        await fixture.observer.query(
          `ALTER DEFAULT PRIVILEGES ${verb} ALL ON ${kind} ${by} ${to(quoted(role))}`,
        )
      }
    }
    await change('GRANT', 'TO')
    try {
      await migrate(driver(), { schema })
      await fixture.observer.query(`SELECT ${quoted(schema)}.extend_partitions(14)`)
    } finally {
      await change('REVOKE', 'FROM')
      // What PostgreSQL itself gives to everyone.
      await fixture.observer.query('ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON ROUTINES TO PUBLIC')
    }
    if (granted) await fixture.observer.query(grants({ schema, role }))
    return {
      schema,
      role,
      look: async () => await inspect(driver(), { schema, role }),
      as: async (sql) => await fixture.observer.query(sql),
    }
  }

  test.each([
    ['PUBLIC', () => 'PUBLIC'],
    ['the application', (role: string) => role],
  ] as const)('that give everything to %s change nothing', async (_, to) => {
    const { schema, look } = await made(to)
    expect(await look()).toEqual([])
    expect(await inspect(driver(), { schema })).toEqual([])
    const { rows } = await fixture.observer.query(
      `SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p')
       AND EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee <> relowner AND relname <> 'work')`,
      [quoted(schema)],
    )
    expect(rows).toEqual([])
  })

  test('on schemas let no neighbour put functions where the owner would call them', async () => {
    const { schema, role, look } = await made(() => 'PUBLIC')
    const neighbour = await newRole(fixture.observer)
    await fixture.observer.query(`GRANT CREATE ON SCHEMA ${quoted(schema)} TO ${quoted(neighbour)}`)
    const told = [{ code: 'role-privilege-extra', what: expect.stringContaining(neighbour) }]
    expect(await look()).toMatchObject(told)
    expect(await inspect(driver(), { schema })).toMatchObject(told)
    await fixture.observer.query(`DROP FUNCTION ${quoted(schema)}.make_month(date)`)
    await migrate(driver(), { schema, repair: true })
    expect(await inspect(driver(), { schema, role })).toEqual([])
  })

  test('of an earlier version are taken back by grants, and told for any role', async () => {
    const { schema, role, look } = await made(() => 'PUBLIC')
    const [s, r] = [quoted(schema), quoted(role)]
    await fixture.observer.query(`GRANT ALL ON ALL TABLES IN SCHEMA ${s} TO ${r}`)
    const told = await inspect(driver(), { schema })
    expect(told).toContainEqual(
      expect.objectContaining({
        code: 'role-privilege-extra',
        object: 'table balance',
        what: expect.stringContaining(`the role ${role} has DELETE, INSERT`),
      }),
    )
    await fixture.observer.query(grants({ schema, role }))
    expect(await look()).toEqual([])
    expect(await inspect(driver(), { schema })).toEqual([])
  })

  test('do not hide what somebody gave on purpose: it stays through an upgrade', async () => {
    const { schema, role } = await made(() => 'PUBLIC')
    const [s, r] = [quoted(schema), quoted(role)]
    await fixture.observer.query(`GRANT SELECT ON ${s}.movement TO ${r}`)
    await migrate(driver(), { schema, repair: true })
    expect(await inspect(driver(), { schema, role })).toMatchObject([
      { code: 'role-privilege-extra', object: 'table movement' },
    ])
    // Nothing can be changed by it.
    expect(await inspect(driver(), { schema })).toEqual([])
  })

  test('are as they were, and so is search_path', async () => {
    const { schema, role } = await made(() => 'PUBLIC')
    const client = await fixture.observer.connect()
    try {
      await client.query('BEGIN')
      await client.query("SET LOCAL search_path = 'a b', public")
      const before = (await client.query('SHOW search_path')).rows
      await client.query(grants({ schema, role }))
      expect((await client.query('SHOW search_path')).rows).toEqual(before)
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
  })
})
