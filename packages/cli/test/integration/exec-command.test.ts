/** One at a time across machines: what runs under a lease never outlives it, whoever is killed or stopped. */
import { readFileSync } from 'node:fs'
import { startPostgres, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fromPg } from '../../../holdfast/src/drivers/pg.ts'
import { createLeases, type LeaseReading } from '../../../holdfast/src/entries/leases.ts'
import { migrate } from '../../../holdfast/src/schema/index.ts'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { ExecProcess, untilGone } from '../support/exec-process.ts'
import { runCommand, runProcess } from '../support/run-command.ts'

let url: string
let pool: pg.Pool
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  pool = new pg.Pool({ connectionString: url, max: 2 })
  await migrate(fromPg(pool))
})
afterAll(async () => await pool.end())
beforeEach(async () => {
  await pool.query('DELETE FROM holdfast.lease')
})

const leaseNow = async (): Promise<LeaseReading | undefined> =>
  await createLeases(fromPg(pool)).read('deploy')

const exec = (flags: readonly string[], script: string, at = url): ExecProcess =>
  new ExecProcess(at, flags, script)

const forever = 'exec sleep 600'
/** Ends by SIGKILL only, with all that it started. */
const stubborn = `trap '' TERM; while :; do sleep 0.05; done`

/** Whether no signal waits to be handed to a process. */
function isPending(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return /^ShdPnd:\s*0+$/m.test(status)
}

async function codeOf(script: string): Promise<number | null> {
  await using process = exec([], script)
  return await process.ended()
}

describe('exit codes', () => {
  test.each([
    ['exit 3', 3],
    ['kill -KILL $$', 137],
    ['exec /etc/passwd', 126],
  ])('%s gives %i, and the lease is free again', async (script, code) => {
    expect(await codeOf(script)).toBe(code)
    expect(await leaseNow()).toMatchObject({ state: 'free' })
  })

  test('a command that is not there gives 127', async () => {
    const { code } = await runProcess(['exec', '--lock', 'a', '--', 'no-such-command'], {
      DATABASE_URL: url,
    })
    expect(code).toBe(127)
  })

  test('a command whose arguments are too long gives 126, says so, and frees the lease', async () => {
    const { code, out, err } = await runCommand(
      ['exec', '--lock', 'deploy', '--json', '--', 'echo', 'x'.repeat(200_000)],
      { DATABASE_URL: url },
    )
    expect([code, out]).toEqual([126, ''])
    expect(JSON.parse(err)).toEqual({
      error: {
        code: 'COMMAND_NOT_STARTED',
        message: expect.stringMatching(/could not be started.*too long.*E2BIG/),
        next: expect.stringContaining('file'),
      },
    })
    expect(await leaseNow()).toMatchObject({ state: 'free' })
  })

  test('arguments and flags after -- are the command’s, with all that is in them', async () => {
    const args = ['--json', '--', '$HOME', 'a  b', `it's`, '']
    const print = 'process.stdout.write(JSON.stringify(process.argv.slice(1)))'
    const { code, out } = await runProcess(
      ['exec', '--lock', 'a', '--', process.execPath, '-e', print, '--', ...args],
      { DATABASE_URL: url },
    )
    expect([code, JSON.parse(out)]).toEqual([0, args])
  })

  test('without the schema: 125, and the next command', async () => {
    const empty = (await testDatabase('empty')).directUrl
    const { code, out, err } = await runCommand(
      ['exec', '--lock', 'a', '--json', '--', 'echo', 'ran'],
      { DATABASE_URL: empty },
    )
    expect([code, out]).toEqual([125, ''])
    expect(JSON.parse(err)).toMatchObject({
      error: { code: 'SCHEMA_MISSING', next: expect.stringContaining('holdfast migrate') },
    })
  })
})

test('the fencing token is given to the command, and is worth nothing after it', async () => {
  await using process = exec(
    [],
    'echo "$HOLDFAST_LEASE_NAME=$HOLDFAST_LEASE_TOKEN."; read _ || exit 0',
  )
  expect(await process.ended()).toBe(0)
  const [, name = '', token = ''] = /^(\w+)=(\d+)\.$/m.exec(process.out) ?? []
  expect(name).toBe('deploy')
  expect(String((await leaseNow())?.token)).toBe(token)
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const held = { name, token: BigInt(token) }
    await expect(createLeases(fromPg(pool)).guard(client, held)).rejects.toMatchObject({
      code: 'LEASE_LOST',
    })
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
})

describe('while somebody else has it', () => {
  test('--no-wait and --wait give 75 and do not run; without them it is waited for', async () => {
    await using holder = exec([], forever)
    await holder.runs()
    for (const flags of [['--no-wait'], ['--wait', '0.2']]) {
      const { code, out, err } = await runCommand(
        ['exec', '--lock', 'deploy', ...flags, '--json', '--', 'echo', 'ran'],
        { DATABASE_URL: url },
      )
      expect([code, out]).toEqual([75, ''])
      expect(JSON.parse(err)).toEqual({
        error: {
          code: 'LEASE_TIMEOUT',
          message: expect.stringMatching(/did not run\. .*, process \d+, has had the lease since/),
          next: expect.any(String),
        },
      })
    }
    await using next = exec([], 'exit 5')
    await next.tells(/^Waiting: .*, process \d+, has had the lease since/)
    holder.signal('SIGTERM')
    expect(await holder.ended()).toBe(143)
    expect(await next.ended()).toBe(5)
  })

  test('who has it when the wait is over is told, and not who had it when it began', async () => {
    const lease = await createLeases(fromPg(pool)).acquire('deploy', { note: 'first, process 1' })
    await using waiting = exec(['--wait', '2'], 'echo ran')
    await waiting.tells(/^Waiting: first, process 1, has had the lease/)
    await pool.query(`UPDATE holdfast.lease SET note = 'second, process 2'`)
    expect(await waiting.ended()).toBe(75)
    await lease.release()
    expect(waiting.err).toMatch(/The command did not run\. second, process 2, has had the lease/)
  })

  test('whoever has given it back is not told to have it', async () => {
    const before = await createLeases(fromPg(pool)).acquire('deploy', { note: 'first, process 1' })
    await before.release()
    const other = await pool.connect()
    try {
      // As for the moment in which somebody takes it.
      await other.query('BEGIN; SELECT FROM holdfast.lease FOR UPDATE')
      const { code, err } = await runCommand(
        ['exec', '--lock', 'deploy', '--no-wait', '--', 'echo', 'ran'],
        { DATABASE_URL: url },
      )
      expect([code, err]).toEqual([75, expect.stringMatching(/did not run\. Somebody else took/)])
      expect(err).not.toContain('first')
    } finally {
      await other.query('ROLLBACK')
      other.release()
    }
  })

  test('a signal ends the wait as it would end the command', async () => {
    await using holder = exec([], forever)
    await holder.runs()
    await using waiting = exec([], 'echo ran')
    await waiting.tells(/^Waiting/)
    waiting.signal('SIGINT')
    expect([await waiting.ended(), waiting.out]).toEqual([130, ''])
  })
})

describe('signals', () => {
  test('are handed on, and what the command makes of them is its exit code', async () => {
    await using process = exec([], `trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done`)
    await process.says('ready')
    process.signal('SIGTERM')
    expect(await process.ended()).toBe(9)
  })

  test('one that comes while the lease is renewed for the start ends it, and the command does not run', async () => {
    await pool.query(`
      CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(77); RETURN new; END';
      CREATE TRIGGER slow BEFORE UPDATE ON holdfast.lease FOR EACH ROW
        WHEN (old.token = new.token) EXECUTE FUNCTION public.slow()`)
    const holder = await pool.connect()
    try {
      await holder.query('SELECT pg_advisory_lock(77)')
      await using process = exec([], 'echo ran')
      await waitUntil('it renews', async () => {
        const { rows } = await pool.query(
          `SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND NOT granted`,
        )
        return rows.length > 0 || undefined
      })
      process.signal('SIGTERM')
      // Its process has to have heard of it before the lease is renewed: a second one goes the same way.
      await waitUntil('the signal was taken', () => isPending(process.holder) || undefined)
      await holder.query('SELECT pg_advisory_unlock(77)')
      expect([await process.ended(), process.out]).toEqual([143, ''])
    } finally {
      holder.release()
      await pool.query('DROP TRIGGER slow ON holdfast.lease; DROP FUNCTION public.slow()')
    }
  })

  test('Ctrl-Z stops neither', async () => {
    await using process = exec([], forever)
    const { child } = await process.runs()
    process.signal('SIGTSTP')
    process.signal('SIGTERM')
    expect(await process.ended()).toBe(143)
    await untilGone(child)
  })

  test('what the command leaves running is ended with it', async () => {
    await using process = exec(['--ttl', '4', '--grace', '0.2'], `(${stubborn}) & echo "left $!"`)
    expect(await process.ended()).toBe(0)
    const left = Number(/left (\d+)/.exec(process.out)?.[1])
    await untilGone(left)
  })
})

describe('the command is gone before the lease can be somebody else’s', () => {
  const short = ['--ttl', '4', '--grace', '0.4'] as const

  test.each([
    ['SIGKILL', forever],
    ['SIGKILL', stubborn],
    ['SIGSTOP', forever],
    ['SIGSTOP', stubborn],
  ] as const)('%s of the holder: %s', async (signal, script) => {
    await using process = exec(short, script)
    const { child } = await process.runs()
    process.signal(signal)
    await untilGone(child)
    expect(await leaseNow()).toMatchObject({ state: 'held' })
    if (signal === 'SIGSTOP') {
      process.signal('SIGCONT')
      expect([await process.ended(), process.err]).toEqual([
        76,
        expect.stringContaining('The command was ended before it was through'),
      ])
    }
  })

  test.each([['SIGKILL'], ['SIGSTOP']] as const)('%s of the guardian', async (signal) => {
    await using holder = exec(short, stubborn)
    const { child, guardian } = await holder.runs()
    process.kill(guardian, signal)
    await untilGone(child)
    expect(await holder.ended()).toBe(76)
    expect(await leaseNow()).toMatchObject({ state: 'free' })
  })

  test('the control: without the guardian it outlives its holder', async () => {
    await using holder = exec(short, stubborn)
    const { child, guardian } = await holder.runs()
    process.kill(guardian, 'SIGSTOP')
    process.kill(guardian, 'SIGKILL')
    holder.signal('SIGKILL')
    await expect.poll(async () => (await leaseNow())?.state, { timeout: 10_000 }).toBe('free')
    expect(process.kill(child, 0)).toBe(true)
    process.kill(-child, 'SIGKILL')
  })

  test('a database that is gone', async () => {
    const server = await startPostgres()
    const gone = await server.createDatabase()
    const own = new pg.Pool({ connectionString: gone, max: 1 })
    await migrate(fromPg(own))
    await own.end()
    await using process = exec(
      [...short, '--json'],
      `trap 'echo told; exit 0' TERM; ${forever.slice(5)} & wait`,
      gone,
    )
    const { child } = await process.runs()
    await server.stop('immediate')
    await untilGone(child)
    expect(await process.ended()).toBe(76)
    expect(process.out).toContain('told')
    expect(JSON.parse(process.err)).toMatchObject({ error: { code: 'LEASE_LOST' } })
  })

  test('a lease that somebody else has already', async () => {
    await using process = exec(short, stubborn)
    const { child } = await process.runs()
    await pool.query('DELETE FROM holdfast.lease')
    await untilGone(child)
    expect(await process.ended()).toBe(76)
  })
})

test('flags that do not fit together are refused', async () => {
  const lines: [string[], RegExp][] = [
    [['exec', '--lock', 'a'], /The command is needed, after --/],
    [['exec', '--', 'true'], /--lock is needed/],
    [['exec', '--lock', 'a', 'true'], /Put -- before the command/],
    [['exec', '--lock', 'a', '--lock', 'b', '--', 'true'], /--lock is given twice/],
    [['exec', '--lock', 'a', '--no-wait', '--wait', '1', '--', 'true'], /cannot be used together/],
    ...['1', '0.05', '30s', '-5', '1e3', '100000'].map((ttl): [string[], RegExp] => [
      ['exec', '--lock', 'a', `--ttl=${ttl}`, '--', 'true'],
      /^--ttl takes a number of seconds without a unit, from 2 to 99999\.$/m,
    ]),
    [['exec', '--lock', 'a', '--ttl=', '--', 'true'], /^--ttl is empty\.$/m],
    [
      ['exec', '--lock', 'a', '--wait', '2m', '--', 'true'],
      /^--wait takes a number of seconds without a unit, from 0\.1 to 99999\.$/m,
    ],
    [['exec', '--lock', 'a', '--grace', '20', '--', 'true'], /--grace can be 10 s at most/],
  ]
  for (const [args, message] of lines) {
    const { code, err } = await runCommand(args, { DATABASE_URL: url })
    expect([args, code, err]).toEqual([args, 2, expect.stringMatching(message)])
  }
})
