/** Looking at a database, and doing something about it, on the command line. */
import { spawn } from 'node:child_process'
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, waitUntil, waitUntilBlocked, withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../holdfast/src/index.ts'
import { migrate } from '../../../holdfast/src/schema/index.ts'
import {
  command,
  environmentWith,
  type Result,
  runCommand,
  runProcess,
} from '../support/run-command.ts'
import { testDatabase } from '../../../holdfast/test/support/database.ts'

let url: string
let pool: pg.Pool
let hf: Holdfast<pg.PoolClient>
let folder: string

beforeAll(async () => {
  url = (await testDatabase()).directUrl
  pool = new pg.Pool({ connectionString: url, max: 4, application_name: 'shop' })
  pool.on('error', () => undefined)
  await migrate(fromPg(pool))
  await pool.query('CREATE TABLE t (id int); INSERT INTO t VALUES (1)')
  hf = createHoldfast(fromPg(pool))
  folder = await mkdtemp(join(tmpdir(), 'holdfast-cli-'))
})
afterAll(async () => {
  await pool.end()
  await rm(folder, { recursive: true })
})

const holdfast = (...args: string[]): Promise<Result> =>
  runCommand(args, { DATABASE_URL: url }, folder)
const json = async (...args: string[]): Promise<unknown> =>
  JSON.parse((await holdfast(...args, '--json')).out)

async function client(application: string): Promise<pg.Client & { readonly pid: number }> {
  const one = new pg.Client({ connectionString: url, application_name: application })
  one.on('error', () => undefined)
  await one.connect()
  onTestFinished(async () => await one.end().catch(() => undefined))
  const { rows } = await one.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return Object.assign(one, { pid: rows[0]?.pid as number })
}

/** The command that the one without --yes prints. */
const printed = ({ out }: Result): string[] =>
  (/\n {2}holdfast (cancel .+)\n$/.exec(out)?.[1] ?? '').split(' ')

/** One who holds the table, and one who waits for it. */
async function blocked(): Promise<{ holder: number; waiter: number; outcome: Promise<string> }> {
  const [holding, waiting] = [await client('holder'), await client('waiter')]
  await holding.query('BEGIN; LOCK TABLE t')
  const outcome = waiting.query('SELECT FROM t').then(
    () => 'done',
    (error: { readonly code: string }) => error.code,
  )
  await waitUntilBlocked(pool, waiting.pid)
  return { holder: holding.pid, waiter: waiting.pid, outcome }
}

describe('locks, why and cancel', () => {
  test('by name, without colours in a pipe', async () => {
    await hf.guard(lockKey('cart', 7), async () => {
      const waiter = await client('checkout')
      const { lock } = lockKey('cart', 7)
      const waiting = waiter.query(`SELECT pg_advisory_lock(${String(lock.id)})`)
      await waitUntilBlocked(pool, waiter.pid)
      const { code, out, err } = await holdfast('locks')
      expect([code, err]).toEqual([0, ''])
      expect(out).toMatch(/^1 session waits, for up to .*\n\nshop \d+ {2}blocks 1 · .*holds cart:7/)
      expect(out).toMatch(/└─ checkout \d+ {2}waits .* for cart:7\n/)
      expect(out).not.toContain('\u001B')
      expect(await json('locks')).toMatchObject({
        roots: [expect.any(Number)],
        sessions: expect.any(Array),
      })
      const why = await holdfast('why', String(waiter.pid))
      expect(why.code).toBe(0)
      expect(why.out).toMatch(/has waited .* for cart:7, which shop \(pid \d+\) holds\./)
      expect(why.out).toMatch(/\n {2}holdfast cancel \d+ --terminate --seen \w+-\w+ --yes\n$/)
      const cancelled = waiting.catch((error: unknown) => error)
      await pool.query('SELECT pg_cancel_backend($1)', [waiter.pid])
      expect(await cancelled).toMatchObject({ code: '57014' })
    })
  })

  test('--watch prints again and again, as lines of JSON if told to, until a signal', async () => {
    const [program = '', ...before] = command
    const child = spawn(program, [...before, 'locks', '--watch', '0.1', '--json'], {
      env: environmentWith({ DATABASE_URL: url }),
    })
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
    })
    await waitUntil('three lines', () => out.split('\n').length > 3 || undefined)
    const ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve([code, signal]))
    })
    child.kill('SIGINT')
    expect(await ended).toEqual([0, null])
    for (const line of out.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('roots')
  })

  test('cancel does nothing without --yes', async () => {
    const { holder, waiter, outcome } = await blocked()
    const would = await holdfast('cancel', String(waiter))
    expect(would.code).toBe(3)
    expect(would.out).toMatch(
      /^Would cancel the statement of waiter, pid \d+.*\n {2}SELECT FROM t\nNothing was done; to do it, if it is still in this transaction:\n {2}holdfast cancel \d+ --seen \w+-\w+ --yes\n$/,
    )
    const idle = await holdfast('cancel', String(holder))
    expect(idle.out).toContain('--terminate ends the session')
    const { out } = await holdfast('cancel', String(waiter), '--json')
    expect(JSON.parse(out)).toMatchObject({ pid: waiter, done: false })
    const { rows } = await pool.query(
      'SELECT count(*)::int AS n FROM pg_stat_activity WHERE pid = ANY ($1)',
      [[holder, waiter]],
    )
    expect(rows).toEqual([{ n: 2 }])
    expect(await holdfast(...printed(would))).toMatchObject({ code: 0 })
    expect(await outcome).toBe('57014')
  })

  test('cancel --terminate ends the session, and who waited goes on', async () => {
    const { holder, outcome } = await blocked()
    const ended = await holdfast(
      ...printed(await holdfast('cancel', String(holder), '--terminate')),
    )
    expect(ended).toMatchObject({ code: 0, out: expect.stringContaining('told to end: holder') })
    expect(await outcome).toBe('done')
  })

  test('R3: cancel names the transaction it means, and leaves another one alone', async () => {
    const pooled = await client('pooled')
    await pooled.query('BEGIN')
    const command = printed(await holdfast('cancel', String(pooled.pid), '--terminate'))
    await pooled.query('COMMIT')
    await pooled.query('BEGIN')
    expect(await holdfast(...command)).toMatchObject({
      code: 1,
      err: expect.stringContaining('The session is not in the transaction that was seen'),
    })
    expect((await pooled.query('COMMIT')).command).toBe('COMMIT')
    for (const seen of [[], ['--seen', 'x'], ['--seen', '1-']]) {
      const bare = await holdfast('cancel', String(pooled.pid), '--terminate', '--yes', ...seen)
      expect(bare).toMatchObject({ code: 2, err: expect.stringContaining('--seen') })
    }
    expect((await pooled.query('SELECT 1')).rowCount).toBe(1)
    const idle = printed(await holdfast('cancel', String(pooled.pid), '--terminate'))
    expect(idle.join(' ')).toMatch(/--seen \w+-idle --yes$/)
    expect(await holdfast(...idle)).toMatchObject({ code: 0 })
  })

  test('what is no client of this database is refused', async () => {
    await withClient(await createDatabase(inject('postgresUrl')), async (elsewhere) => {
      const { rows } = await elsewhere.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      const pid = String(rows[0]?.pid)
      expect((await holdfast('why', pid)).out).toMatch(/is connected to the database test_/)
      const seen = ['--seen', '1-idle', '--yes']
      for (const flags of [[], seen, ['--terminate', ...seen]]) {
        expect(await holdfast('cancel', pid, ...flags)).toMatchObject({
          code: 1,
          err: expect.stringContaining('No client of this database'),
        })
      }
      expect((await elsewhere.query('SELECT 1')).rowCount).toBe(1)
    })
    for (const wrong of ['0', 'x', '-1', '99999999999']) {
      expect(await holdfast('why', wrong)).toMatchObject({ code: 2 })
    }
    expect((await holdfast('why')).err).toMatch(/^<pid> is needed\.\n/)
    expect((await holdfast('why', '1', '2')).err).toMatch(
      /^There are more arguments than it takes\.\n/,
    )
  })

  test('what others wrote cannot move the cursor', async () => {
    const attacker = await client('evil')
    await attacker.query(`BEGIN; LOCK TABLE t; SELECT '\u001B[2J\u009B31m\u202E'`)
    for (const args of [
      ['locks'],
      ['locks', '--json'],
      ['why', String(attacker.pid)],
      ['cancel', String(attacker.pid)],
      ['top'],
    ]) {
      const victim = await client('victim')
      const waiting = victim.query('SELECT FROM t').catch(() => undefined)
      await waitUntilBlocked(pool, victim.pid)
      const { out } = await holdfast(...args)
      // oxlint-disable-next-line no-control-regex -- that is what it is for
      expect(out).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E]/u)
      expect(out).toMatch(/\\x1b\[2J|\\u001b\[2J|last: BEGIN;…/)
      await pool.query('SELECT pg_terminate_backend($1)', [victim.pid])
      await waiting
    }
  })
})

describe('ledger, holds and leases', () => {
  test('an account with its movements, page by page, and its drift', async () => {
    const credits = hf.credits({ name: 'credits' })
    for (const at of [1, 2, 3]) await credits.grant('u1', 10 * at, { operationId: `op-${at}` })
    await credits.hold('u1', 5, { operationId: 'hold-1', ttl: '1 h' })
    const { code, out } = await holdfast('ledger', 'show', 'credits', 'u1', '--movements', '2')
    expect(code).toBe(0)
    expect(out).toMatch(
      /^available +credited +debited +held +allowance +drift +moved\n +55 +60 +0 +5 +0 +0 /,
    )
    expect(out).toMatch(/hold-1\n/)
    const [, cursor = ''] = /--before=(\S+)/.exec(out) ?? []
    const older = await holdfast('ledger', 'show', 'credits', 'u1', `--before=${cursor}`)
    expect(older.out).toContain('op-1')
    expect(older.out).not.toContain('op-3')
    expect(await json('ledger', 'show', 'credits', 'u1')).toMatchObject({
      accounts: [{ drift: '0' }],
    })
    await pool.query('UPDATE holdfast.balance SET credited = credited + 1')
    expect((await holdfast('ledger', 'show', 'credits', 'u1')).out).toContain('run holdfast audit')
    await pool.query('UPDATE holdfast.balance SET credited = credited - 1')
    expect((await holdfast('ledger', 'show', 'credits', 'nobody')).out).toBe(
      'This account was never used.\nIf it was used in a scope, name it with --scope; `holdfast ledger keys <book>` shows scopes.\n',
    )
    const scoped = await holdfast('ledger', 'show', 'credits', 'nobody', '--scope', 'acme')
    expect(scoped.out).toBe('This account was never used.\n')
    expect((await holdfast('ledger', 'hide', 'a', 'b')).err).toMatch(
      /^<verb> is show, books, redeclare, keys, usage, followers or unfollow\.\n/,
    )
  })

  test('holds and leases', async () => {
    const { out } = await holdfast('holds')
    expect(out).toMatch(/^book +key +amount +ends +overdue +hold +operation\ncredits +u1 +5 /)
    expect(await json('holds', '--limit', '1')).toMatchObject({ holds: [{ key: 'u1' }] })
    expect((await holdfast('leases')).out).toBe('No lease was ever taken.\n')
    const lease = await hf.leases.acquire('nightly', { note: 'host 7' })
    expect((await holdfast('leases')).out).toMatch(/nightly +held .* host 7\n/)
    await lease.release()
  })
})

describe('claims', () => {
  test('tables of the configuration file, of a flag, and queues', async () => {
    expect((await holdfast('claims')).out).toContain('No table is known')
    await pool.query(`CREATE TABLE outbox (id int PRIMARY KEY, status text NOT NULL DEFAULT 'pending',
      claim_token uuid, lease_until timestamptz); INSERT INTO outbox VALUES (1)`)
    await hf.work({ queue: 'emails' }).enqueue({ payload: 1 })
    const here = join(folder, 'project', 'deep')
    await mkdir(here, { recursive: true })
    const options = JSON.stringify({ databaseUrl: url, claims: [{ table: 'outbox' }] })
    await writeFile(join(folder, 'project', 'package.json'), '{}')
    await writeFile(join(folder, 'project', 'holdfast.config.json'), options)
    const { code, out } = await runCommand(['claims'], {}, here)
    expect(code).toBe(0)
    expect(out).toMatch(
      /^table +ready +oldest +claimed +stranded +dead\noutbox +1 +– +0 +0 +–\nholdfast\.work emails +1 /,
    )
    expect(out).toContain('CREATE INDEX CONCURRENTLY ON "outbox"')
    const file = join(folder, 'claims.json')
    await writeFile(file, JSON.stringify([{ table: 'gone' }]))
    const broken = await holdfast('claims', '--claims', file, '--json')
    expect(JSON.parse(broken.out)).toMatchObject({
      claims: [{ table: 'gone', advice: [{ code: 'claims-broken' }] }, {}],
    })
  })
})

describe('schedules', () => {
  test('list, pause, resume and run; changes only with --yes', async () => {
    expect((await holdfast('schedules')).out).toBe('No schedule was ever started.\n')
    let ran = 0
    const schedule = hf.schedule({
      name: 'nightly',
      cron: '0 3 * * *',
      guarantee: 'at-most-once',
      handler: () => {
        ran += 1
      },
    })
    await schedule.fire()
    expect((await holdfast('schedules', 'list')).out).toMatch(
      /nightly +cron 0 3 \* \* \* \(UTC\) +idle /,
    )
    for (const verb of ['pause', 'resume', 'run']) {
      const would = await holdfast('schedules', verb, 'nightly')
      expect(would).toMatchObject({
        code: 3,
        out: expect.stringMatching(/^Would .*\nNothing was done: add --yes\.\n$/),
      })
    }
    expect(await json('schedules')).toMatchObject({ schedules: [{ paused: false, waiting: 0 }] })
    expect((await holdfast('schedules', 'pause', 'nightly', '--yes')).out).toBe('It is paused.\n')
    expect(await json('schedules')).toMatchObject({ schedules: [{ paused: true }] })
    expect((await holdfast('schedules', 'resume', 'nightly', '--yes')).out).toMatch(/^It goes on/)
    expect(await holdfast('schedules', 'run', 'nightly', '--yes')).toMatchObject({ code: 0 })
    expect(ran).toBe(0)
    await schedule.fire()
    expect(ran).toBe(1)
    expect(await holdfast('schedules', 'pause', 'nightlyy')).toMatchObject({
      code: 1,
      err: expect.stringContaining('OBSERVE_NO_SUCH_SCHEDULE'),
    })
    const unknown = await holdfast('schedules', 'pause', 'nightlyy', '--yes', '--json')
    expect(unknown.code).toBe(1)
    expect(JSON.parse(unknown.err)).toMatchObject({ error: { code: 'OBSERVE_NO_SUCH_SCHEDULE' } })
    expect((await holdfast('schedules', 'pause')).err).toMatch(/^<name> is needed/)
  })
})

describe('where settings come from', () => {
  const wrong = 'postgres://u:s3cret@127.0.0.1:1/x'

  test('a flag, then the variables, then the file', async () => {
    const here = join(folder, 'order')
    await mkdir(here)
    await writeFile(join(here, 'holdfast.config.json'), JSON.stringify({ databaseUrl: url }))
    const works = async (args: string[], environment: Record<string, string>): Promise<boolean> =>
      (await runCommand(['holds', ...args], environment, here)).code === 0
    expect(await works([], {})).toBe(true)
    expect(await works([], { DATABASE_URL: wrong })).toBe(false)
    expect(await works([], { DATABASE_URL: wrong, HOLDFAST_DATABASE_URL: url })).toBe(true)
    expect(await works([], { DATABASE_URL: url, HOLDFAST_DATABASE_URL: wrong })).toBe(false)
    expect(await works(['--database-url', url], { HOLDFAST_DATABASE_URL: wrong })).toBe(true)
    await writeFile(join(here, 'other.json'), JSON.stringify({ databaseUrl: wrong }))
    expect(await works(['--config', join(here, 'other.json')], {})).toBe(false)
    expect(await works([], { HOLDFAST_CONFIG: join(here, 'other.json') })).toBe(false)
  }, 60_000)

  test('no command prints the URL', async () => {
    const commands = [
      ['locks'],
      ['top'],
      ['why', '1'],
      ['cancel', '1'],
      ['holds'],
      ['audit', '--json'],
    ]
    for (const args of commands) {
      const { code, out, err } = await runCommand(args, { DATABASE_URL: wrong }, folder)
      expect(code).toBe(1)
      expect(out + err).not.toContain('s3cret')
    }
    const misused = await runCommand(['why', wrong, wrong], {}, folder)
    expect(misused.code).toBe(2)
    expect(misused.err).not.toContain('s3cret')
  }, 60_000)
})

test('console hands on its flags, and what the configuration says', async () => {
  const here = join(folder, 'with-console')
  const installed = join(here, 'node_modules/@holdfast/console')
  await mkdir(installed, { recursive: true })
  await writeFile(
    join(installed, 'package.json'),
    JSON.stringify({ name: '@holdfast/console', bin: { x: './x.js' } }),
  )
  await writeFile(
    join(installed, 'x.js'),
    'console.log(JSON.stringify([process.argv.slice(2), process.env.HOLDFAST_DATABASE_URL])); process.exit(7)',
  )
  await writeFile(
    join(here, 'holdfast.config.json'),
    JSON.stringify({ databaseUrl: url, console: { port: 1, redact: true } }),
  )
  const { code, out } = await runProcess(['console', '--host', 'x'], {}, here)
  expect(code).toBe(7)
  expect(JSON.parse(out)).toEqual([['--port', '1', '--redact', '--host', 'x'], url])
  // S17: nobody else can put one there. To give a file away one has to be root.
  if (process.geteuid?.() !== 0) return
  await chown(join(installed, 'x.js'), 65_534, 65_534)
  const foreign = await runCommand(['console'], {}, here)
  expect(foreign).toMatchObject({ code: 2, err: expect.stringContaining('another user') as string })
})
