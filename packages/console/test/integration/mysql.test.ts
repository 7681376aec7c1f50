/** The console on MariaDB and MySQL over HTTP: what it shows, what it refuses, and whom it ends. */
import { readFileSync } from 'node:fs'
import { deferred, waitUntil } from '@holdfast/testkit'
import type { LockTree, ObservedSession } from 'holdfast/observe'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  eachOwnServer,
  type OwnServer,
} from '../../../holdfast/test/engines/innodb/observe/own-server.ts'
import { createHoldfast, lockKey, migrate } from '../../../holdfast/src/mysql.ts'
import type { InnodbSession } from '../../../holdfast/test/server-behaviour/innodb/support/innodb-session.ts'
import { runCommand } from '../../src/command/run-command.ts'
import type { ConsoleOptions } from '../../src/server/console-options.ts'
import { allActions } from '../../src/server/actions.ts'
import { dataRoutes } from '../../src/server/data-routes.ts'
import {
  act,
  auth,
  bearer,
  codeOf,
  startAudited,
  startConsole,
  type StartedConsole,
  tokens,
} from '../support/started-console.ts'

/** Seldom enough that MariaDB shows something new each time. */
const everyMs = 130

const offered = ['transactions', 'doctor']

const page = readFileSync(new URL('../../../../docs/mysql.md', import.meta.url), 'utf8')
const [, rights = ''] = page.split('### Rights')
const [looking = '', mysqlLooking = ''] = [...rights.matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(
  ([, text = '']) => text,
)

async function json<T>({ get }: StartedConsole, path: string): Promise<T> {
  return (await (await get(path, bearer(tokens.view))).json()) as T
}

/** The session, once it is seen as wanted. */
async function seen(
  one: StartedConsole,
  { id }: InnodbSession,
  isSo: (session: ObservedSession) => boolean,
): Promise<ObservedSession> {
  return await waitUntil(
    `session ${id} is seen so`,
    async () => {
      const { session } = await json<{ session?: ObservedSession }>(one, `/api/session/${id}`)
      return session !== undefined && isSo(session) ? session : undefined
    },
    { everyMs: 1_050 },
  )
}

const inTransaction = ({ transactionStartedAt }: ObservedSession): boolean =>
  transactionStartedAt !== undefined

/** What the page sends: what it was shown. */
function wish(session: ObservedSession): object {
  const { pid, startedAt, transactionStartedAt = null, transactionId } = session
  return { pid, startedAt, transactionStartedAt, transactionId, confirm: String(pid) }
}

async function isAlive(session: InnodbSession): Promise<boolean> {
  return await session.rows('SELECT 1').then(
    () => true,
    () => false,
  )
}

eachOwnServer((place: OwnServer) => {
  const driver = (account?: string): NonNullable<ConsoleOptions['driver']> =>
    place.driver(account) as never
  const database = (): string => new URL(place.url()).pathname.slice(1)

  beforeAll(async () => {
    await migrate(place.driver())
    const session = await place.open()
    await session.all(
      'CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
      'INSERT INTO t VALUES (1, 0), (2, 0)',
    )
  })

  const write = 'UPDATE t SET v = v + 1 WHERE id = 1'

  test('who blocks whom, by the name of the lock', async () => {
    const one = await startConsole({ driver: driver(), auth })
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
    const tree = await waitUntil(
      'somebody waits',
      async () => {
        const found = await json<LockTree>(one, '/api/locks')
        return found.roots.length === 1 ? found : undefined
      },
      { everyMs },
    )
    const [root, waiter] = tree.sessions
    expect(root?.holds).toMatchObject([{ kind: 'named', name: 'cart:7', namespace: 'cart' }])
    expect(waiter?.blockedBy).toEqual([{ pid: root?.pid, kind: 'hard' }])
    expect(waiter?.waitsFor?.name).toBe('cart:7')
    mayEnd.resolve()
    await Promise.all([first, second])
  })

  test('what the engine has not is refused by name: routes, metrics and actions', async () => {
    const { one, audit } = await startAudited({
      driver: driver(),
      actions: allActions,
      metrics: true,
    })
    const info = await json<object>(one, '/api/info')
    expect(info).toMatchObject({ databases: [{ engine: 'innodb', features: { doctor: true } }] })
    const wanted: Record<string, string> = { account: '?book=b&key=k', keys: '?book=b' }
    wanted['usage'] = '?book=b&key=k'
    wanted['job'] = '?id=00000000-0000-0000-0000-000000000000'
    for (const name of dataRoutes.keys()) {
      const answer = await one.get(`/api/${name}${wanted[name] ?? ''}`, bearer(tokens.view))
      const expected = offered.includes(name) ? [200, 'none'] : [404, 'NOT_OFFERED']
      expect([name, answer.status, await codeOf(answer)]).toEqual([name, ...expected])
    }
    const scraped = await one.get('/metrics', bearer(tokens.metrics))
    expect([scraped.status, await codeOf(scraped)]).toEqual([404, 'NOT_OFFERED'])
    const id = '00000000-0000-0000-0000-000000000000'
    for (const action of allActions.filter((each) => !/^(cancel|terminate)$/.test(each))) {
      const about = action.startsWith('job') ? { job: id } : { schedule: id }
      const answer = await act(one, action, { ...about, confirm: id })
      expect([action, answer.status, await codeOf(answer)]).toEqual([action, 404, 'NOT_OFFERED'])
    }
    const others = allActions.length - 2
    expect(audit.map(({ result, code }) => [result, code])).toEqual(
      Array.from({ length: others }, () => ['refused', 'NOT_OFFERED']),
    )
  })

  describe('ending', () => {
    test('is closed until it is switched on', async () => {
      const { one, audit } = await startAudited({ driver: driver() })
      const a = await place.open()
      await a.all('BEGIN', write)
      const session = await seen(one, a, inTransaction)
      const answer = await act(one, 'terminate', wish(session))
      expect([answer.status, await codeOf(answer)]).toEqual([403, 'ACTION_NOT_ALLOWED'])
      expect(audit).toMatchObject([{ result: 'refused', target: String(a.id) }])
      expect(await isAlive(a)).toBe(true)
      await a.rows('ROLLBACK')
    })

    test('the transaction that was shown, and no later one of the same session', async () => {
      const { one } = await startAudited({ driver: driver(), actions: ['cancel', 'terminate'] })
      const a = await place.open()
      await a.all('BEGIN', write)
      const shown = await seen(one, a, inTransaction)
      // The same session, within the same second, at somebody else's work.
      await a.all('ROLLBACK', 'BEGIN', write)
      for (const action of ['cancel', 'terminate']) {
        const answer = await act(one, action, wish(shown))
        expect([answer.status, await codeOf(answer)]).toEqual([409, 'TRANSACTION_OVER'])
      }
      // Without the number it cannot be said which is meant, so it is none.
      const now = await seen(one, a, ({ transactionId }) => transactionId !== shown.transactionId)
      const unnamed = { ...wish(now), transactionId: undefined }
      expect(await codeOf(await act(one, 'terminate', unnamed))).toBe('TRANSACTION_OVER')
      expect(await isAlive(a)).toBe(true)
      const done = await act(one, 'terminate', wish(now))
      expect([done.status, await done.json()]).toEqual([200, { done: true }])
      expect(await isAlive(a)).toBe(false)
    })

    test('a session of before the server was started again is another one', async () => {
      const { one } = await startAudited({ driver: driver(), actions: ['terminate'] })
      const a = await place.open()
      await a.all('BEGIN', write)
      const shown = await seen(one, a, inTransaction)
      const startedAt = new Date(Date.parse(shown.startedAt ?? '') - 60_000).toISOString()
      const answer = await act(one, 'terminate', wish({ ...shown, startedAt }))
      expect([answer.status, await codeOf(answer)]).toEqual([404, 'NO_SUCH_SESSION'])
      expect(await isAlive(a)).toBe(true)
      await a.rows('ROLLBACK')
    })

    test.each([[7], ['x'.repeat(41)], ["t1' OR 1"], [''], [{}]])(
      'a number that is none is not passed on: %j',
      async (transactionId) => {
        const { one } = await startAudited({ driver: driver(), actions: ['terminate'] })
        const moment = '2026-01-01T00:00:00.000Z'
        const body = { pid: 1, startedAt: moment, transactionStartedAt: moment, confirm: '1' }
        const answer = await act(one, 'terminate', { ...body, transactionId })
        expect([answer.status, await codeOf(answer)]).toEqual([400, 'BAD_REQUEST'])
      },
    )
  })

  describe('rights', () => {
    const account = async (name: string, ...grants: readonly string[]): Promise<void> => {
      const root = await place.open()
      await root.rows(`CREATE USER '${name}'@'%'`)
      for (const grant of [`SELECT ON \`${database()}\`.*`, ...grants])
        await root.rows(`GRANT ${grant} TO '${name}'@'%'`)
    }
    const looks = place.isMariadb
      ? ['PROCESS ON *.*']
      : ['PROCESS ON *.*', 'SELECT ON performance_schema.*']

    test('without the right to look it says so, and names the GRANT', async () => {
      await account('blind')
      const one = await startConsole({ driver: driver('blind'), auth })
      const answer = await one.get('/api/locks', bearer(tokens.view))
      expect(answer.status).toBe(403)
      const { error } = (await answer.json()) as { error: { code: string; next: string } }
      expect(error.code).toBe('PROCESS_RIGHT_MISSING')
      expect(error.next).toContain('GRANT PROCESS ON *.*')
    })

    test('these rights are enough to look, and not to end anybody', async () => {
      const root = await place.open()
      const texts = place.isMariadb ? looking : looking + mysqlLooking
      for (const text of texts.split(';\n').filter((each) => each !== '')) {
        const here = text.replace(' ON app.', ` ON \`${database()}\`.`)
        await root.rows(
          here.replace(" IDENTIFIED BY 'change me'", '').replace('holdfast_console', 'looking'),
        )
      }
      const { one } = await startAudited({ driver: driver('looking'), actions: ['terminate'] })
      for (const path of ['/api/locks', '/api/transactions', '/api/doctor'])
        expect([path, (await one.get(path, bearer(tokens.view))).status]).toEqual([path, 200])
      const a = await place.open()
      await a.all('BEGIN', write)
      const session = await seen(one, a, inTransaction)
      const answer = await act(one, 'terminate', wish(session))
      expect([answer.status, await codeOf(answer)]).toEqual([403, 'KILL_RIGHT_MISSING'])
      expect(await isAlive(a)).toBe(true)
      await a.rows('ROLLBACK')
    })

    test('without the other tables the locks have their names all the same', async () => {
      const root = await place.open()
      await root.rows("CREATE USER 'narrow'@'%'")
      for (const grant of [...looks, `SELECT ON \`${database()}\`.holdfast_lock`])
        await root.rows(`GRANT ${grant} TO 'narrow'@'%'`)
      const one = await startConsole({ driver: driver('narrow'), auth })
      const hf = createHoldfast(place.driver())
      await hf.guard(lockKey('cart', 8), async () => {
        const seenName = async (): Promise<true | undefined> =>
          JSON.stringify(await json(one, '/api/locks')).includes('"cart:8"') || undefined
        expect(await waitUntil('its name is told', seenName, { everyMs })).toBe(true)
      })
    })

    test('with the right to end it ends', async () => {
      const right = place.isMariadb ? 'CONNECTION ADMIN' : 'CONNECTION_ADMIN'
      await account('ending', ...looks, `${right} ON *.*`)
      const { one } = await startAudited({ driver: driver('ending'), actions: ['terminate'] })
      const a = await place.open('looking')
      await a.all('START TRANSACTION WITH CONSISTENT SNAPSHOT', 'SELECT v FROM t WHERE id = 2')
      const session = await seen(one, a, inTransaction)
      expect(await (await act(one, 'terminate', wish(session))).json()).toEqual({ done: true })
      expect(await isAlive(a)).toBe(false)
    })
  })

  test('the command opens it with a mysql:// or a mariadb:// URL, and stops', async () => {
    for (const scheme of ['mysql:', 'mariadb:']) {
      const stop = new AbortController()
      let said = ''
      const ended = runCommand(['--port', '0', place.url().replace('mysql:', scheme)], {
        environment: { HOLDFAST_CONSOLE_VIEW_TOKEN: tokens.view },
        out: (text) => (said += text),
        err: (text) => (said += text),
        stop: stop.signal,
      })
      const origin = await waitUntil('it listens', () => /http:\S+(?=\/\n)/.exec(said)?.[0])
      const answer = await fetch(`${origin}/api/locks`, bearer(tokens.view))
      expect([answer.status, await answer.json()]).toMatchObject([200, { roots: [] }])
      stop.abort()
      expect([await ended, said]).toEqual([0, `Holdfast console on ${origin}/\n`])
    }
  })

  test.each([
    ['nobody', 'ER_ACCESS_DENIED_ERROR. Check user and password', undefined],
    ['root', 'ER_BAD_DB_ERROR. Create the database', '/nowhere'],
  ])('the command says why it cannot: %s, %s', async (name, why, path) => {
    const url = new URL(place.url())
    url.username = name
    if (name === 'nobody') url.password = 'hunter2'
    url.pathname = path ?? url.pathname
    let said = ''
    const code = await runCommand(['--port', '0', '--login-link', url.href], {
      environment: {},
      out: (text) => (said += text),
      err: (text) => (said += text),
      stop: new AbortController().signal,
    })
    expect([code, said]).toEqual([1, expect.stringContaining(why)])
    expect(said).not.toMatch(/hunter2|127\.0\.0\.1/)
  })

  test('keys and values are masked, as MariaDB and MySQL write them', async () => {
    const one = await startConsole({ driver: driver(), auth, redact: true })
    const [a, b] = [await place.open(), await place.open()]
    await a.all('BEGIN', 'UPDATE t SET v = 1 WHERE id = 2')
    const text =
      'UPDATE t SET v = v /* hunter1 */ WHERE id = 2 AND "hunter2" <> \'hunter3\' # hunter4'
    const waits = b.rows(text).catch(() => undefined)
    const tree = await waitUntil(
      'it waits',
      async () => {
        const answer = await one.get('/api/locks', bearer(tokens.view))
        const found = await answer.text()
        return found.includes('"waitsFor"') ? found : undefined
      },
      { everyMs },
    )
    expect(tree).not.toMatch(/hunter|PRIMARY: 2/)
    expect(tree).toContain(`row of ${database()}.t`)
    expect(tree).toContain('UPDATE t SET v = v')
    await a.rows('ROLLBACK')
    await waits
  })
})
