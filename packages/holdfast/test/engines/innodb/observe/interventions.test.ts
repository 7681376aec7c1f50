/** Ending somebody's statement or session on MariaDB and MySQL: the one that was meant, and no other. */
import { randomUUID } from 'node:crypto'
import { waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  createHoldfast,
  createInterventions,
  createObserver,
  migrate,
  type ObservedSession,
  type Observer,
  type SessionSeen,
} from '../../../../src/mysql.ts'
import { codeOf } from '../../../../src/engines/innodb/errno.ts'
import type { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { eachOwnServer } from './own-server.ts'

const everyMs = 130

async function seenAs(
  observer: Observer,
  { id }: InnodbSession,
  isSo: (session: ObservedSession) => boolean,
): Promise<SessionSeen & Pick<ObservedSession, 'pid'>> {
  const look = async (): Promise<ObservedSession | undefined> => {
    const session = await observer.session(id)
    return session !== undefined && isSo(session) ? session : undefined
  }
  const session = await waitUntil(`session ${id} is seen so`, look, { everyMs })
  const { pid, startedAt = '', transactionStartedAt = null, transactionId } = session
  const number = transactionId === undefined ? {} : { transactionId }
  return { pid, startedAt, transactionStartedAt, ...number }
}

const inTransaction = ({ transactionStartedAt }: ObservedSession): boolean =>
  transactionStartedAt !== undefined

/** Whether the session answers. */
async function isAlive(session: InnodbSession): Promise<boolean> {
  return await session.rows('SELECT 1').then(
    () => true,
    () => false,
  )
}

const over = { code: 'OBSERVE_TRANSACTION_OVER' }
const gone = { code: 'OBSERVE_NO_SUCH_SESSION' }

eachOwnServer((place) => {
  beforeAll(async () => {
    await migrate(place.driver())
    const session = await place.open()
    await session.all(
      'CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
      'INSERT INTO t VALUES (1, 0), (2, 0)',
    )
  })

  const write = 'UPDATE t SET v = v + 1 WHERE id = 1'
  const shared = 'SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE'

  test('terminate ends the session in its transaction, and what waited goes on', async () => {
    const driver = place.driver()
    const observer = createObserver(driver)
    const [a, b] = [await place.open(), await place.open()]
    await a.all('BEGIN', write)
    const waits = b.rows('UPDATE t SET v = 100 WHERE id = 1')
    const seen = await seenAs(observer, a, ({ waiters }) => waiters === 1)
    expect(await createInterventions(driver).terminate(a.id, seen)).toBe(true)
    await waits
    expect(await isAlive(a)).toBe(false)
    expect(await b.value('SELECT v FROM t WHERE id = 1')).toBe(100)
  })

  test('cancel ends the statement; the session and its transaction go on', async () => {
    const driver = place.driver()
    const observer = createObserver(driver)
    const a = await place.open()
    await a.all('BEGIN', write)
    const slow = a.rows('SELECT v, SLEEP(60) FROM t WHERE id = 2').catch(codeOf)
    const seen = await seenAs(
      observer,
      a,
      (session) => inTransaction(session) && session.query.includes('SLEEP'),
    )
    expect(await createInterventions(driver).cancel(a.id, seen)).toBe(true)
    // MySQL answers what has slept so far.
    const answer = await slow
    expect(place.isMariadb ? answer : '1317').toBe('1317')
    expect(await a.isInTransaction()).toBe(true)
    await a.rows('ROLLBACK')
  })

  test('an idle session runs nothing that could be cancelled', async () => {
    const driver = place.driver()
    const a = await place.open()
    await a.all('BEGIN', write)
    const seen = await seenAs(createObserver(driver), a, inTransaction)
    expect(await createInterventions(driver).cancel(a.id, seen)).toBe(false)
    expect(await a.isInTransaction()).toBe(true)
    await a.rows('ROLLBACK')
  })

  describe.each([
    ['that has written', write],
    ['that has only locked', shared],
  ])('a transaction %s', (_, work) => {
    test('that ended meanwhile is left alone with what came after it', async () => {
      const driver = place.driver()
      const interventions = createInterventions(driver)
      const a = await place.open()
      await a.all('BEGIN', work)
      const seen = await seenAs(createObserver(driver), a, inTransaction)
      // Within the same second, and the same statement.
      await a.all('COMMIT', 'BEGIN', work)
      for (const end of ['cancel', 'terminate'] as const)
        await expect(interventions[end](a.id, seen)).rejects.toMatchObject(over)
      await a.rows('COMMIT')
      await expect(interventions.terminate(a.id, seen)).rejects.toMatchObject(over)
      expect(await isAlive(a)).toBe(true)
    })

    test('control: without its number the next one is ended', async () => {
      const driver = place.driver()
      const observer = createObserver(driver)
      const a = await place.open()
      await a.all('BEGIN', work)
      const first = await seenAs(observer, a, inTransaction)
      await a.all('COMMIT', 'BEGIN', work)
      const { transactionId: before } = first
      const next = await seenAs(observer, a, ({ transactionId }) => transactionId !== before)
      const { transactionId = '' } = next
      expect(await createInterventions(driver).terminate(a.id, { ...first, transactionId })).toBe(
        true,
      )
      expect(await isAlive(a)).toBe(false)
    })
  })

  test('a session that was in no transaction and is now, and the other way round', async () => {
    const driver = place.driver()
    const observer = createObserver(driver)
    const interventions = createInterventions(driver)
    const a = await place.open()
    const idle = await seenAs(observer, a, (session) => !inTransaction(session))
    expect(idle.transactionStartedAt).toBeNull()
    await a.all('BEGIN', write)
    await expect(interventions.terminate(a.id, idle)).rejects.toMatchObject(over)
    await a.rows('ROLLBACK')
    expect(await interventions.terminate(a.id, idle)).toBe(true)
    expect(await isAlive(a)).toBe(false)
  })

  test('a statement outside of a transaction is not taken for the one that was shown', async () => {
    const driver = place.driver()
    const observer = createObserver(driver)
    const interventions = createInterventions(driver)
    await using holder = await place.open()
    const name = `hold ${randomUUID()}`
    await holder.rows(`SELECT GET_LOCK('${name}', 0)`)
    const a = await place.open()
    const waits = `SELECT GET_LOCK('${name}', 20)`
    for (const end of ['cancel', 'terminate'] as const) {
      const first = a.rows(waits)
      const seen = await seenAs(observer, a, ({ state }) => state === 'active')
      expect(seen.transactionStartedAt).toBeNull()
      await holder.rows(`SELECT RELEASE_LOCK('${name}')`)
      await first
      await a.rows(`SELECT RELEASE_LOCK('${name}')`)
      await holder.rows(`SELECT GET_LOCK('${name}', 0)`)
      // It ends in an error, or says that it was ended.
      const stranger = a.rows(waits).catch(() => undefined)
      const another = await seenAs(
        observer,
        a,
        ({ transactionId }) => transactionId !== seen.transactionId,
      )
      await expect(interventions[end](a.id, seen)).rejects.toMatchObject(over)
      // The one that was shown is.
      expect(await interventions[end](a.id, another)).toBe(true)
      await stranger
    }
  })

  test('who says one statement after the other is ended as well', async () => {
    const driver = place.driver()
    const a = await place.open()
    await a.all('BEGIN', write)
    const seen = await seenAs(createObserver(driver), a, inTransaction)
    const busy = (async () => {
      while (await isAlive(a));
    })()
    expect(await createInterventions(driver).terminate(a.id, seen)).toBe(true)
    await busy
  })

  test('a session that is not there, that of another start of the server, and one of another database', async () => {
    const driver = place.driver()
    const interventions = createInterventions(driver)
    const a = await place.open()
    await a.all('BEGIN', write)
    const seen = await seenAs(createObserver(driver), a, inTransaction)
    await expect(interventions.terminate(999_999, seen)).rejects.toMatchObject(gone)
    await expect(interventions.terminate(-1, seen)).rejects.toMatchObject(gone)
    const startedAt = new Date(Date.parse(seen.startedAt) - 60_000).toISOString()
    await expect(interventions.terminate(a.id, { ...seen, startedAt })).rejects.toMatchObject(gone)
    await expect(interventions.terminate(a.id, {} as never)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    const other = await place.open()
    await other.all('CREATE DATABASE beside', 'USE beside')
    const there = await seenAs(createObserver(driver), other, () => true)
    await expect(interventions.terminate(other.id, there)).rejects.toMatchObject(gone)
    await other.rows('DROP DATABASE beside')
    expect(await isAlive(a)).toBe(true)
    await a.rows('ROLLBACK')
  })

  test.skipIf(place.isMariadb)(
    'sessions that call themselves as we do are left alone',
    async () => {
      const driver = place.driver()
      const observer = createObserver(driver)
      const own = (
        await driver.alone.query({ text: 'SELECT CONNECTION_ID() AS id', values: [] })
      )[0]
      const seen = await waitUntil('our own is seen', async () => {
        const session = await observer.session(Number(own?.['id']))
        return session?.startedAt === undefined ? true : session
      })
      // The same connection looks, and does not see itself.
      expect(seen).toBe(true)
      const other = place.driver()
      await other.transaction(
        async (tx) => {
          const [mine] = await tx.query({
            text: 'SELECT CONNECTION_ID() AS id, v FROM t WHERE id = 2',
            values: [],
          })
          const id = Number(mine?.['id'])
          const session = (await observer.session(id)) as ObservedSession
          expect(session.application).toBe('looking')
          const interventions = createInterventions(driver, { exceptApplication: 'looking' })
          const { startedAt = '', transactionStartedAt = null, transactionId = '' } = session
          await expect(
            interventions.terminate(id, { startedAt, transactionStartedAt, transactionId }),
          ).rejects.toMatchObject(gone)
        },
        { scopes: [] },
      )
    },
  )

  describe('rights', () => {
    const account = async (name: string, ...grants: readonly string[]): Promise<void> => {
      const root = await place.open()
      await root.rows(`CREATE USER '${name}'@'%'`)
      const database = new URL(place.url()).pathname.slice(1)
      await root.rows(`GRANT ALL ON \`${database}\`.* TO '${name}'@'%'`)
      for (const grant of grants) await root.rows(`GRANT ${grant} TO '${name}'@'%'`)
    }
    const looks = place.isMariadb
      ? ['PROCESS ON *.*']
      : ['PROCESS ON *.*', 'SELECT ON performance_schema.*']

    test('without the right to look the GRANT is told, and with it there is a tree', async () => {
      await account('blind')
      const observer = createObserver(place.driver('blind'))
      const error = await observer.locks().catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'OBSERVE_RIGHT_MISSING', details: { right: 'PROCESS' } })
      const { message } = error as Error
      for (const grant of looks) expect(message).toContain(`GRANT ${grant} TO 'blind'@'%'`)
      const root = await place.open()
      for (const grant of looks) await root.rows(`GRANT ${grant} TO 'blind'@'%'`)
      // Rights of a connection are those it began with.
      const seeing = createObserver(place.driver('blind'))
      expect(await seeing.locks()).toMatchObject({ roots: [] })
    })

    test('without the right to end what others run nothing is ended, and the GRANT is told', async () => {
      await account('watcher', ...looks)
      const a = await place.open()
      await a.all('BEGIN', write)
      const driver = place.driver('watcher')
      const seen = await seenAs(createObserver(driver), a, inTransaction)
      const error = await createInterventions(driver)
        .terminate(a.id, seen)
        .catch((thrown: unknown) => thrown)
      const right = place.isMariadb ? 'CONNECTION ADMIN' : 'CONNECTION_ADMIN'
      expect(error).toMatchObject({ code: 'OBSERVE_RIGHT_MISSING', details: { right } })
      expect((error as Error).message).toContain(`GRANT ${right} ON *.* TO 'watcher'@'%'`)
      expect(await isAlive(a)).toBe(true)
      await a.rows('ROLLBACK')
    })
  })

  test('a look that takes too long is ended', async () => {
    const driver = place.driver()
    const observer = createObserver(driver, { statementTimeoutMs: 1 })
    const crowd = await Promise.all(Array.from({ length: 60 }, async () => await place.open()))
    for (const session of crowd) await session.all('BEGIN', 'SELECT v FROM t WHERE id = 2')
    const looked = await Promise.allSettled(Array.from({ length: 40 }, () => observer.locks()))
    const codes = looked.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    for (const error of codes) expect(error).toMatchObject({ code: 'OBSERVE_TIMEOUT' })
    expect(codes.length).toBeGreaterThan(0)
  })

  test('inside of a transaction of the same driver a look is refused', async () => {
    const driver = place.driver()
    const hf = createHoldfast(driver)
    const looking = hf.transaction(async () => await hf.observe.locks())
    await expect(looking).rejects.toMatchObject({ code: 'TX_NESTED' })
  })

  test('what there is only on PostgreSQL is refused by name', async () => {
    const driver = place.driver()
    const { observe } = createHoldfast(driver) as unknown as {
      observe: Record<string, () => Promise<unknown>>
    }
    for (const name of ['books', 'leases', 'schedules', 'claims', 'names', 'record'])
      await expect(observe[name]?.()).rejects.toMatchObject({
        code: 'ENGINE_NOT_OFFERED',
        details: { subject: `observe.${name}` },
      })
    const interventions = createInterventions(driver) as unknown as Record<
      string,
      () => Promise<unknown>
    >
    await expect(interventions['pauseSchedule']?.()).rejects.toMatchObject({
      code: 'ENGINE_NOT_OFFERED',
    })
  })
})
