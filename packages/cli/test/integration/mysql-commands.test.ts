/** Looking at MariaDB and MySQL, and doing something about it, on the command line. */
import { deferred, waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import { eachOwnServer } from '../../../holdfast/test/engines/innodb/observe/own-server.ts'
import { createHoldfast, lockKey } from '../../../holdfast/src/mysql.ts'
import type { InnodbSession } from '../../../holdfast/test/server-behaviour/innodb/support/innodb-session.ts'
import { type Result, runCommand } from '../support/run-command.ts'

const settings = { 'innodb-flush-log-at-trx-commit': '1', 'sync-binlog': '1' }

eachOwnServer((place) => {
  const holdfast = (...args: string[]): Promise<Result> =>
    runCommand(args, { DATABASE_URL: place.url() })
  const json = async (...args: string[]): Promise<Record<string, unknown>> =>
    JSON.parse((await holdfast(...args, '--json')).out) as Record<string, unknown>

  beforeAll(async () => {
    await holdfast('migrate')
    const session = await place.open()
    await session.all(
      'CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
      'INSERT INTO t VALUES (1, 0)',
    )
  })

  /** One who holds a row, and one who waits for it; seen by the command. */
  const blocked = async (): Promise<{
    holder: InnodbSession
    waiter: InnodbSession
    outcome: Promise<string>
  }> => {
    const [holder, waiter] = [await place.open(), await place.open()]
    await holder.all('BEGIN', 'UPDATE t SET v = 1 WHERE id = 1')
    const outcome = waiter.rows('UPDATE t SET v = 2 WHERE id = 1').then(
      () => 'done',
      (error: { readonly code: string }) => error.code,
    )
    await waitUntil(
      'the command sees who waits',
      async () => ((await json('locks'))['roots'] as number[])[0] === holder.id || undefined,
      { everyMs: 130 },
    )
    return { holder, waiter, outcome }
  }

  /** The command that the one without --yes prints. */
  const printed = ({ out }: Result): string[] =>
    (/\n {2}holdfast (cancel .+)\n$/.exec(out)?.[1] ?? '').split(' ')

  test('migrate makes the tables, and says that they are there', async () => {
    const { code, out, err } = await holdfast('migrate')
    expect([code, out, err]).toEqual([0, 'The tables of Holdfast are there.\n', ''])
    expect(await holdfast('migrate', '--repair')).toMatchObject({ code: 2 })
  })

  test('locks: by name, and nobody in the end', async () => {
    const hf = createHoldfast(place.driver())
    const [held, mayEnd] = [deferred(), deferred()]
    const first = hf.guard(lockKey('cart', 7), async () => {
      held.resolve()
      await mayEnd.promise
    })
    await held.promise
    const second = hf.guard(lockKey('cart', 7), async () => undefined, {
      queue: false,
      wait: '60 s',
    })
    const { out, err } = await waitUntil(
      'somebody is seen to wait',
      async () => {
        const result = await holdfast('locks')
        return result.out.startsWith('1 session waits') ? result : undefined
      },
      { everyMs: 130 },
    )
    expect(err).toBe('')
    expect(out).toMatch(/\n\n\S+ \d+ {2}blocks 1 · .*holds cart:7/)
    expect(out).toMatch(/└─ \S+ \d+ {2}waits .* for cart:7\n/)
    expect(out).not.toContain('holdfast_lock')
    mayEnd.resolve()
    await Promise.all([first, second])
    await waitUntil(
      'nobody is seen to wait',
      async () => (await holdfast('locks')).out.startsWith('Nobody waits') || undefined,
      { everyMs: 130 },
    )
    expect((await holdfast('top')).code).toBe(0)
  })

  test('why says it in sentences, and cancel does what it printed, to the one that was meant', async () => {
    const { holder, waiter, outcome } = await blocked()
    const why = await holdfast('why', String(waiter.id))
    expect([why.code, why.err]).toEqual([0, ''])
    const words = why.out.replaceAll(/\s+/g, ' ')
    const database = new URL(place.url()).pathname.slice(1)
    expect(words).toContain(`for row of ${database}.t, which`)
    expect(words).toContain(`(pid ${holder.id}) holds.`)
    expect(words).toContain('waits for nobody: it is the root, and 1 session waits for it.')
    const asked = await holdfast('cancel', String(holder.id))
    expect([asked.code, asked.err]).toEqual([3, ''])
    expect(asked.out).toContain('so there is nothing to cancel')
    const line = printed(asked)
    expect(line).toContain('--terminate')
    // The same second, another transaction.
    await holder.all('ROLLBACK', 'BEGIN', 'UPDATE t SET v = v WHERE id = 1')
    expect(await outcome).toBe('done')
    expect(await holdfast(...line)).toMatchObject({
      code: 1,
      err: expect.stringContaining('not in the transaction that was seen') as unknown,
    })
    await holder.rows('ROLLBACK')
    await waiter.rows('ROLLBACK')
    const next = await blocked()
    const again = printed(await holdfast('cancel', String(next.holder.id)))
    const { code, out } = await holdfast(...again)
    expect([code, out]).toEqual([0, expect.stringContaining('The session was told to end')])
    expect(await next.outcome).toBe('done')
    expect(await holdfast('why', '99999')).toMatchObject({ code: 1 })
  })

  test('doctor: what is wrong, with what to do; exit code 1 on errors and warnings', async () => {
    const before = (await json('doctor'))['findings'] as { code: string; severity: string }[]
    const severities = before.filter(({ severity }) => severity !== 'note').map(({ code }) => code)
    expect(severities).toEqual(place.isMariadb ? ['idle-timeout-unset'] : [])
    expect((await holdfast('doctor')).code).toBe(place.isMariadb ? 1 : 0)
    const session = await place.open()
    await session.rows('SET GLOBAL innodb_flush_log_at_trx_commit = 2')
    const { code, out } = await holdfast('doctor')
    expect(code).toBe(1)
    expect(out).toContain('[log-not-flushed]\n  SET GLOBAL innodb_flush_log_at_trx_commit = 1;')
    await session.rows('SET GLOBAL innodb_flush_log_at_trx_commit = 1')
  })

  describe('what is told when it fails', () => {
    const failure = async (
      url: string,
      ...args: string[]
    ): Promise<Result & { code: number; error: string }> => {
      const result = await runCommand([...args, '--json'], { DATABASE_URL: url })
      expect(result.out + result.err).not.toContain('s3cret')
      const { error } = JSON.parse(result.err) as { error: { code: string; next: string } }
      expect(error.next).not.toBe('')
      return { ...result, error: error.code }
    }
    const with_ = (change: (url: URL) => void): string => {
      const url = new URL(place.url())
      change(url)
      return url.href
    }

    test.each([['locks'], ['doctor'], ['migrate'], ['why', '1'], ['cancel', '1'], ['top']])(
      '%s: wrong password, wrong database, nobody there',
      async (...args) => {
        const denied = with_((url) => {
          url.username = 'nobody'
          url.password = 's3cret'
        })
        expect(await failure(denied, ...args)).toMatchObject({ error: 'ER_ACCESS_DENIED_ERROR' })
        const missing = with_((url) => {
          url.pathname = '/nowhere'
        })
        expect(await failure(missing, ...args)).toMatchObject({ error: 'ER_BAD_DB_ERROR' })
        const absent = 'mysql://root:s3cret@127.0.0.1:1/x'
        expect(await failure(absent, ...args)).toMatchObject({ error: 'ECONNREFUSED' })
        const odd = 'mysql://root:s3cr#et@127.0.0.1:1/x'
        expect(await failure(odd, ...args)).toMatchObject({ error: 'DATABASE_URL_INVALID' })
      },
    )

    test('what only PostgreSQL has is refused before anything is opened', async () => {
      for (const args of [['leases'], ['ledger', 'books'], ['schedules'], ['claims']]) {
        const { error, err } = await failure(place.url(), ...args)
        expect(error).toBe('DATABASE_URL_INVALID')
        expect(err).toContain('is not a URL of PostgreSQL')
        expect(err).toContain('on MariaDB and MySQL there are cancel')
      }
    })

    test('mariadb:// is the same', async () => {
      const url = place.url().replace('mysql:', 'mariadb:')
      const { code, err } = await runCommand(['locks'], { DATABASE_URL: url })
      expect([code, err]).toEqual([0, ''])
    })

    test('without the right to look: the GRANT', async () => {
      const session = await place.open()
      const database = new URL(place.url()).pathname.slice(1)
      await session.all(
        "CREATE USER 'dim'@'%' IDENTIFIED BY 's3cret'",
        `GRANT ALL ON \`${database}\`.* TO 'dim'@'%'`,
      )
      const url = with_((one) => {
        one.username = 'dim'
        one.password = 's3cret'
      })
      const { error, err } = await failure(url, 'locks')
      expect(error).toBe('OBSERVE_RIGHT_MISSING')
      expect(err).toContain("GRANT PROCESS ON *.* TO 'dim'@'%'")
    })
  })
}, settings)
