/** The command as people and scripts run it: a process, its streams and its exit code. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  createDatabase,
  type PostgresServer,
  startPostgres,
  waitUntil,
  withClient,
} from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { errorCodes } from '../../../holdfast/src/errors.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const fromSource = new URL('../../../holdfast/test/support/from-source.ts', import.meta.url).href

interface Result {
  readonly code: number
  readonly out: string
  readonly err: string
}

// The server that tests share loses data in a crash, and the doctor would say so.
let server: PostgresServer
let url: string
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'on' } })
  url = await server.createDatabase()
})
afterAll(() => server.stop('immediate'))

/** Runs the command; the environment has nothing of ours unless it is given. */
function holdfast(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<Result> {
  const { DATABASE_URL: _, HOLDFAST_SCHEMA: __, ...inherited } = process.env
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--import', fromSource, main, ...args],
      { env: { ...inherited, ...environment } },
      (error, out, err) => resolve({ code: Number(error?.code ?? 0), out, err }),
    )
  })
}

const withUrl = (...args: string[]): Promise<Result> => holdfast(args, { DATABASE_URL: url })

describe('without a database', () => {
  test.each([[['--help']], [['help']]])('%j lists the commands', async (args) => {
    const { code, out, err } = await holdfast(args)
    expect([code, err]).toEqual([0, ''])
    for (const name of ['migrate', 'plan', 'doctor', 'grants']) expect(out).toContain(`  ${name} `)
  })

  test.each(['migrate', 'plan', 'doctor', 'grants'])('%s --help lists its flags', async (name) => {
    const { code, out, err } = await holdfast([name, '--help'])
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain(`Usage: holdfast ${name} [flags]`)
    for (const flag of ['--schema <name>', '--json', '--help']) expect(out).toContain(flag)
  })

  test('the version is that of the package', async () => {
    const { out } = await holdfast(['--version'])
    expect(out).toMatch(/^\d+\.\d+\.\d+\S*\n$/)
  })

  test('grants prints them, and nothing else', async () => {
    const { code, out } = await holdfast(['grants', '--role', 'a"pp', '--schema', 'my "schema"'])
    expect(code).toBe(0)
    // First what takes back more than that, in one statement.
    const from = out.indexOf('\nGRANT USAGE ON SCHEMA') + 1
    expect(out.slice(0, from)).toMatch(/^DO \$\$ [^]*END \$\$;\n$/)
    for (const line of out.slice(from).trimEnd().split('\n')) {
      expect(line).toMatch(
        /^GRANT (USAGE ON SCHEMA|EXECUTE ON FUNCTION|SELECT(?:, UPDATE, DELETE)? ON TABLE) "my ""schema"""(\."[a-z_]+")? TO "a""pp";$/,
      )
    }
  })

  test('plan prints SQL, or JSON with the SQL in it', async () => {
    const [text, json] = await Promise.all([holdfast(['plan']), holdfast(['plan', '--json'])])
    expect(text.out).toContain('CREATE TABLE "holdfast".')
    expect(JSON.parse(json.out)).toEqual({ sql: text.out })
  })

  test.each([
    ['plan', []],
    ['grants', ['--role', 'r\u200Bole']],
  ])('S18: %s prints names as they are, since programs read them', async (name, flags) => {
    const schema = 'soft\u00ADhyphen \u202Ename'
    const args = [name, '--schema', schema, ...flags]
    const [text, json] = await Promise.all([holdfast(args), holdfast([...args, '--json'])])
    expect(text.out).toContain(`"${schema}"`)
    expect(text.out).not.toContain('\\xad')
    expect(JSON.parse(json.out)).toEqual({ sql: text.out })
  })
})

describe('what is not understood: exit code 2, usage, and nothing typed is repeated', () => {
  const secret = 'postgres://u:s3cret@127.0.0.1:1/x'
  test.each([
    ['no command', []],
    ['an unknown command', ['migarte']],
    ['a URL for a command', [secret]],
    ['an unknown flag', ['migrate', '--nope']],
    ['an unknown flag with a value', ['migrate', `--url=${secret}`]],
    ['a flag without its value', ['doctor', '--role']],
    ['a value for a switch', ['plan', '--json=yes']],
    ['an argument', ['migrate', secret]],
    ['a missing flag', ['grants']],
    ['no database', ['migrate']],
    ['a name that cannot be', ['plan', '--schema', 'public']],
    ['a migration that is not there', ['plan', '--from', '9999']],
  ])('%s', async (_, args) => {
    const { code, out, err } = await holdfast(args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('Usage: holdfast')
    expect(err).not.toContain('s3cret')
  })
})

describe('failures: exit code 1, the next step, no password', () => {
  test.each([
    ['nobody listens', 'postgres://u:s3cret@127.0.0.1:1/x', /ECONNREFUSED.*\nCheck host and port/],
    ['no such host', 'postgres://u:s3cret@host.invalid/x', /Check host and port/],
    ['not a URL', 'postgres://u:s3cret@a:b:c/x', /Write the database URL as postgres:/],
  ])('%s', async (_, wrong, message) => {
    const { code, out, err } = await holdfast(['migrate', '--database-url', wrong])
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(message)
    expect(err).not.toContain('s3cret')
  })

  test('no such database; as JSON', async () => {
    const wrong = new URL(url)
    wrong.pathname = '/nowhere'
    const { code, err } = await holdfast(['doctor', '--json'], { DATABASE_URL: wrong.href })
    expect(code).toBe(1)
    expect(JSON.parse(err)).toEqual({
      error: {
        code: '3D000',
        message: 'database "nowhere" does not exist',
        next: expect.stringContaining('Create the database'),
      },
    })
  })

  test('an error of the library keeps its code', async () => {
    const database = await createDatabase(inject('postgresUrl'))
    await withClient(database, (client) =>
      client.query('CREATE SCHEMA taken CREATE TABLE theirs ()'),
    )
    const args = ['migrate', '--schema', 'taken', '--database-url', database]
    const { code, err } = await holdfast(args)
    expect(code).toBe(1)
    expect(err).toContain('SCHEMA_OCCUPIED (taken)')
    const asJson = await holdfast([...args, '--json'])
    expect(asJson.code).toBe(1)
    const { error } = JSON.parse(asJson.err) as { error: Record<string, string> }
    const { next } = errorCodes.SCHEMA_OCCUPIED
    expect(error).toMatchObject({ code: 'SCHEMA_OCCUPIED', next })
    expect(error['message']).toContain('SCHEMA_OCCUPIED (taken)')
    expect(error['message']).not.toContain(next)
    expect(err).toBe(`holdfast migrate: ${error['message']}\n${next}\n`)
  })

  test('what the server refused is said', async () => {
    const database = await createDatabase(inject('postgresUrl'))
    const role = `small_${new URL(database).pathname.slice(6)}`
    await withClient(database, (client) => client.query(`CREATE ROLE ${role} LOGIN`))
    const as = new URL(database)
    as.username = role
    const { code, err } = await holdfast(['migrate'], { DATABASE_URL: as.href })
    expect(code).toBe(1)
    expect(err).toMatch(
      /PostgreSQL said: permission denied for database[^]*\nConnect as .* CREATE on/,
    )
    const asJson = await holdfast(['migrate', '--json'], { DATABASE_URL: as.href })
    expect(JSON.parse(asJson.err)).toMatchObject({ error: { code: 'RIGHT_MISSING' } })
  })
})

describe('on a database', () => {
  test('doctor, migrate, doctor, drift, doctor, repair, doctor', async () => {
    const missing = await withUrl('doctor')
    expect(missing.code).toBe(1)
    expect(missing.out).toContain('\nSchema\n\nerror: schema: Holdfast is not installed')
    expect(missing.out).toContain('[schema-missing]\n  Run `holdfast migrate`')
    expect(missing.out).toContain('\n1 error, 1 note. The line below each says what to do.\n')

    const first = await withUrl('migrate')
    expect(first.code).toBe(0)
    expect(first.out).toMatch(/^Schema "holdfast" is up to date: \d+ files applied\.\n$/)
    expect(first.err).toMatch(/^migrations\/0001-/)
    expect(await withUrl('migrate')).toEqual({
      code: 0,
      out: 'Schema "holdfast" is up to date already.\n',
      err: '',
    })
    // A note is no failure.
    const healthy = await withUrl('doctor')
    expect([healthy.code, healthy.err]).toEqual([0, ''])
    expect(healthy.out).toMatch(
      /^The application's role\n\nnote: .* was not named: .* \[not-checked\]\n {2}Name it: [^]*\n1 note\./,
    )

    await withClient(url, (client) =>
      client.query('ALTER FUNCTION holdfast.apply SECURITY INVOKER'),
    )
    const drifted = await withUrl('doctor', '--json')
    expect(drifted.code).toBe(1)
    expect(JSON.parse(drifted.out)).toEqual({
      findings: [
        expect.objectContaining({ code: 'not-checked', severity: 'note', group: 'role' }),
        {
          code: 'function-security',
          severity: 'error',
          group: 'schema',
          object: expect.stringMatching(/^function apply\(/),
          what: expect.any(String),
          fix: expect.stringContaining('holdfast migrate --repair'),
        },
      ],
    })
    const repaired = await withUrl('migrate', '--repair', '--json')
    expect(JSON.parse(repaired.out)).toMatchObject({ schema: 'holdfast', leftover: [] })
    expect(repaired.err).toBe('')
    expect((await withUrl('doctor')).code).toBe(0)
  })

  test('doctor --claims prints the index that a table of yours lacks', async () => {
    await withClient(url, (client) =>
      client.query(`CREATE TABLE outbox (id int PRIMARY KEY, status text NOT NULL, claim_token uuid,
        lease_until timestamptz)`),
    )
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-cli-'))
    const file = join(folder, 'claims.json')
    await writeFile(file, JSON.stringify([{ table: 'outbox' }]))
    const missing = await withUrl('doctor', '--claims', file)
    expect(missing.code).toBe(1)
    const indexes = [...missing.out.matchAll(/^ {2}(CREATE INDEX .*);$/gm)].map(([, sql]) => sql)
    expect(indexes).toHaveLength(2)
    for (const sql of indexes) await withClient(url, (client) => client.query(sql as string))
    expect(await withUrl('doctor', '--claims', file)).toMatchObject({ code: 0 })
    await writeFile(file, '{ "tables": 1 }')
    expect(await withUrl('doctor', '--claims', file)).toMatchObject({ code: 2 })
    expect(await withUrl('doctor', '--claims', join(folder, 'none'))).toMatchObject({ code: 2 })
    await rm(folder, { recursive: true })
  })

  test('flags come before the environment', async () => {
    const environment = { DATABASE_URL: 'postgres://u@127.0.0.1:1/x', HOLDFAST_SCHEMA: 'from_env' }
    const flag = ['--database-url', url]
    const byVariable = await holdfast(['migrate', '--json', ...flag], environment)
    expect(JSON.parse(byVariable.out)).toMatchObject({ schema: 'from_env' })
    const byFlag = await holdfast(['migrate', '--json', '--schema', `we"ird`, ...flag], environment)
    expect(JSON.parse(byFlag.out)).toMatchObject({ schema: `we"ird` })
  })

  test('doctor --role, before and after grants', async () => {
    const schema = 'of_roles'
    const role = `app_${new URL(url).pathname.slice(6)}`
    await withUrl('migrate', '--schema', schema)
    await withClient(url, (client) =>
      client.query(`CREATE ROLE ${role};
        ALTER ROLE ${role} SET statement_timeout = '30s';
        ALTER ROLE ${role} SET lock_timeout = '5s';
        ALTER ROLE ${role} SET idle_in_transaction_session_timeout = '1min'`),
    )
    const doctor = (): Promise<Result> => withUrl('doctor', '--schema', schema, '--role', role)
    const before = await doctor()
    expect(before.code).toBe(1)
    expect(before.out).toContain('[role-privilege-missing]')
    const { out: sql } = await holdfast(['grants', '--schema', schema, '--role', role])
    await withClient(url, (client) => client.query(sql))
    expect(await doctor()).toEqual({ code: 0, out: 'Everything is as expected.\n', err: '' })
    await withClient(url, (client) => client.query(`GRANT SELECT ON ${schema}.balance TO ${role}`))
    const after = await doctor()
    expect(after.code).toBe(1)
    expect(after.out).toContain(`REVOKE SELECT ON TABLE ${schema}.balance FROM ${role};`)
  })

  test('waits for another installer, as long as lock_timeout allows', async () => {
    const { out: sql } = await holdfast(['plan', '--schema', 'busy'])
    const [lock] = /pg_advisory_xact_lock\(-?\d+\)/.exec(sql) as [string]
    await withClient(url, async (other) => {
      await other.query('BEGIN')
      await other.query(`SELECT ${lock}`)
      const environment = { DATABASE_URL: url, PGOPTIONS: '-c lock_timeout=50ms' }
      const { code, err } = await holdfast(['migrate', '--schema', 'busy'], environment)
      expect(code).toBe(1)
      expect(err).toMatch(/lock timeout\nSomebody holds a lock/)
      const waiting = withUrl('migrate', '--schema', 'busy')
      await waitUntil('the command waits', async () => {
        const { rowCount } = await other.query(
          `SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
           WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()`,
        )
        return rowCount === 1 ? true : undefined
      })
      await other.query('COMMIT')
      expect((await waiting).code).toBe(0)
    })
  })

  test('what plan printed is what migrate and doctor expect', async () => {
    const { out: sql } = await holdfast(['plan', '--schema', 'planned'])
    await withClient(url, (client) => client.query(sql))
    expect((await withUrl('doctor', '--schema', 'planned')).code).toBe(0)
    expect((await withUrl('migrate', '--schema', 'planned')).out).toContain('already')
  })
})
