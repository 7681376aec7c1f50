/** Who blocks whom on MariaDB and MySQL: each edge is compared with what the test has built, by hand and by guards. */
import { deferred, waitUntil } from '@holdfast/testkit'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  createHoldfast,
  createInterventions,
  createObserver,
  lockBranches,
  lockKey,
  migrate,
} from '../../../../src/mysql.ts'
import type { LockTree, ObservedSession, Observer } from '../../../../src/mysql.ts'
import type { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { clientNames, openClient } from '../support/innodb-clients.ts'
import { eachOwnServer } from './own-server.ts'

/** Seldom enough that MariaDB shows something new each time. */
const everyMs = 130

async function treeWhere(
  observer: Observer,
  what: string,
  isSo: (tree: LockTree) => boolean,
): Promise<LockTree> {
  const look = async (): Promise<LockTree | undefined> => {
    const tree = await observer.locks()
    return isSo(tree) ? tree : undefined
  }
  return await waitUntil(what, look, { everyMs })
}

async function treeWith(observer: Observer, waiting: number): Promise<LockTree> {
  const countIn = ({ sessions }: LockTree): number =>
    sessions.filter(({ waitsFor }) => waitsFor !== undefined).length
  return await treeWhere(
    observer,
    `${waiting} are seen to wait`,
    (tree) => countIn(tree) === waiting,
  )
}

/** From a waiter to those it waits for. */
function edgesOf({ sessions }: LockTree): readonly string[] {
  return sessions
    .flatMap(({ pid, blockedBy }) => blockedBy.map((block) => `${pid} ${block.kind} ${block.pid}`))
    .toSorted()
}

function sessionOf({ sessions }: LockTree, { id }: { readonly id: number }): ObservedSession {
  return sessions.find(({ pid }) => pid === id) as ObservedSession
}

const lockText = (row: number): string => `SELECT v FROM t WHERE id = ${row} FOR UPDATE`

/** Sends a statement that waits; whatever comes of it. */
function sends(session: InnodbSession, text: string): Promise<unknown> {
  return session.rows(text).catch((error: unknown) => error)
}

eachOwnServer((place) => {
  beforeAll(async () => {
    const driver = place.driver()
    await migrate(driver)
    const session = await place.open()
    const rows = Array.from({ length: 40 }, (_, at) => `(${at + 1}, 0)`).join(', ')
    await session.all(
      'CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
      `INSERT INTO t VALUES ${rows}`,
    )
  })

  const sessions = async (count: number): Promise<readonly InnodbSession[]> => {
    const all: InnodbSession[] = []
    for (let at = 0; at < count; at += 1) {
      const session = await place.open()
      await session.all('SET SESSION innodb_lock_wait_timeout = 60', 'BEGIN')
      all.push(session)
    }
    return all
  }

  test('trees of any shape, built by hand: every edge, and no other', async () => {
    const observer = createObserver(place.driver())
    // Whom each of them waits for: somebody before it. A chain, a star, and everything in between.
    const shapes = fc
      .integer({ min: 2, max: 9 })
      .chain((size) =>
        fc.tuple(...Array.from({ length: size - 1 }, (_, at) => fc.integer({ min: 0, max: at }))),
      )
    const property = fc.asyncProperty(shapes, async (parents) => {
      const all = await sessions(parents.length + 1)
      for (const [at, session] of all.entries()) await session.rows(lockText(at + 1))
      const waits: Promise<unknown>[] = []
      const ahead = new Map<number, number[]>()
      const expected: string[] = []
      for (const [at, parent] of parents.entries()) {
        const waiter = all[at + 1] as InnodbSession
        // MySQL does not serve a queue in its order: whoever is let in leaves at once.
        const left = async (): Promise<unknown> => await sends(waiter, 'ROLLBACK')
        waits.push(sends(waiter, lockText(parent + 1)).then(left))
        const waiters = new Set(all.slice(1, at + 2).map(({ id }) => id))
        const tree = await treeWhere(observer, `${at + 1} wait`, ({ sessions: seen }) => {
          const waiting = seen.filter(({ waitsFor }) => waitsFor !== undefined)
          return waiting.length === waiters.size && waiting.every(({ pid }) => waiters.has(pid))
        })
        expected.push(`${waiter.id} hard ${(all[parent] as InnodbSession).id}`)
        const queue = ahead.get(parent) ?? []
        for (const other of queue) expected.push(`${waiter.id} soft ${other}`)
        ahead.set(parent, [...queue, waiter.id])
        expect(edgesOf(tree)).toEqual(expected.toSorted())
      }
      const tree = await observer.locks()
      expect(tree.roots).toEqual([(all[0] as InnodbSession).id])
      expect(lockBranches(tree)).toHaveLength(1)
      const root = sessionOf(tree, all[0] as InnodbSession)
      expect(root).toMatchObject({ waiters: parents.length, state: 'idle in transaction' })
      await (all[0] as InnodbSession).rows('ROLLBACK')
      await Promise.all(waits)
    })
    await fc.assert(property, { numRuns: 6, seed: 19, endOnFailure: true })
  })

  test('two holders of one row, and who wants to change it', async () => {
    const observer = createObserver(place.driver())
    const [a, b, c] = (await sessions(3)) as [InnodbSession, InnodbSession, InnodbSession]
    // MariaDB tells those apart that have written something.
    for (const [at, holder] of [a, b].entries()) {
      await holder.rows(`UPDATE t SET v = v + 1 WHERE id = ${20 + at}`)
      await holder.rows('SELECT v FROM t WHERE id = 10 LOCK IN SHARE MODE')
    }
    const waits = sends(c, 'UPDATE t SET v = 1 WHERE id = 10')
    const tree = await treeWith(observer, 1)
    expect(edgesOf(tree)).toEqual([`${c.id} hard ${a.id}`, `${c.id} hard ${b.id}`].toSorted())
    const wanted = sessionOf(tree, c)
    const database = new URL(place.url()).pathname.slice(1)
    expect(wanted.waitsFor).toMatchObject({
      kind: 'row',
      name: `row of ${database}.t`,
      table: `${database}.t`,
      row: 'PRIMARY: 10',
    })
    expect(sessionOf(tree, a).holds).toMatchObject([{ kind: 'row', row: 'PRIMARY: 10' }])
    await a.rows('ROLLBACK')
    await b.rows('ROLLBACK')
    await waits
  })

  test('somebody who has it shared and wants it alone is in the way of the next one, hard', async () => {
    const observer = createObserver(place.driver())
    const [a, b, c] = (await sessions(3)) as [InnodbSession, InnodbSession, InnodbSession]
    for (const holder of [a, b])
      await holder.rows('SELECT v FROM t WHERE id = 11 LOCK IN SHARE MODE')
    const first = sends(a, lockText(11))
    await treeWith(observer, 1)
    const second = sends(c, lockText(11))
    const tree = await treeWith(observer, 2)
    expect(edgesOf(tree)).toEqual(
      [`${a.id} hard ${b.id}`, `${c.id} hard ${a.id}`, `${c.id} hard ${b.id}`].toSorted(),
    )
    await b.rows('ROLLBACK')
    await first
    await a.rows('ROLLBACK')
    await second
  })

  describe('locks by name', () => {
    test('guards and acquire: by their names, with the number of the connection', async () => {
      const driver = place.driver()
      const hf = createHoldfast(driver)
      // Another process: it has never heard of these keys.
      const observer = createObserver(place.driver())
      const [held, mayEnd] = [deferred<number>(), deferred()]
      const key = lockKey('cart', 7)
      const first = hf.guard(key, async (tx) => {
        const [rows] = await (tx as { query(text: string): Promise<[{ id: number }[]]> }).query(
          'SELECT CONNECTION_ID() AS id',
        )
        held.resolve(Number(rows[0]?.id))
        await mayEnd.promise
      })
      const holder = await held.promise
      const quiet = await treeWhere(
        observer,
        'the holder is seen',
        ({ sessions: all }) => all.length === 1,
      )
      const lock = { kind: 'named', name: 'cart:7', namespace: 'cart', source: 'row' }
      expect(quiet).toMatchObject({ roots: [], sessions: [{ pid: holder, holds: [lock] }] })
      expect(quiet.sessions[0]?.holds[0]?.heldAtMostMs).toBeLessThan(60_000)
      const second = hf.guard(key, async () => undefined, { queue: false, wait: '60 s' })
      const tree = await treeWith(observer, 1)
      const [root, waiter] = tree.sessions
      expect(root).toMatchObject({ pid: holder, waiters: 1, holds: [lock] })
      expect(waiter).toMatchObject({ waitsFor: lock, blockedBy: [{ pid: holder, kind: 'hard' }] })
      // Not as a row of some table beside its name.
      expect(root?.holds).toHaveLength(1)
      expect(waiter?.waitingMs).toBeLessThan(60_000)
      expect(await observer.hotKeys()).toMatchObject([{ name: 'cart:7', waiting: 1 }])
      // The same process knows it by having used it.
      const own = await treeWith(hf.observe, 1)
      expect(own.sessions[0]?.holds).toMatchObject([{ ...lock, source: 'process' }])
      mayEnd.resolve()
      await Promise.all([first, second])
    })

    test.each([
      ['several parts, of which one has a colon', lockKey('a', 'b:c', 'd'), 'a:b:c:d', 'a'],
      ['a name that is cut off', lockKey('report', 'x'.repeat(60)), /^report:x{39}…$/, undefined],
      ['what is no plain text', lockKey('user', 'a b'), 'user:a_b…', undefined],
    ])('%s', async (_, key, name, namespace) => {
      const hf = createHoldfast(place.driver())
      const observer = createObserver(place.driver())
      const [held, mayEnd] = [deferred(), deferred()]
      const first = hf.guard(key, async () => {
        held.resolve()
        await mayEnd.promise
      })
      await held.promise
      const second = hf.guard(key, async () => undefined, { queue: false, wait: '60 s' })
      const tree = await treeWith(observer, 1)
      const wanted = tree.sessions.find(({ waitsFor }) => waitsFor !== undefined)?.waitsFor
      expect(wanted).toMatchObject({ kind: 'named', source: 'row' })
      expect(wanted?.name).toMatch(name)
      expect(wanted?.namespace).toBe(namespace)
      mayEnd.resolve()
      await Promise.all([first, second])
    })

    test('control: a row whose number is not that of its name has none, nor has one of another table', async () => {
      const observer = createObserver(place.driver())
      const [a, b] = (await sessions(2)) as [InnodbSession, InnodbSession]
      const named = '00000000000000ff'
      await a.all(
        'ROLLBACK',
        'CREATE TABLE IF NOT EXISTS other_lock LIKE holdfast_lock',
        ...['holdfast_lock', 'other_lock'].map(
          (table) =>
            `INSERT IGNORE INTO ${table} (name, seq, stamp, conn, since) VALUES ('cart:7#${named}', 1, 1, 0, 0)`,
        ),
      )
      for (const table of ['holdfast_lock', 'other_lock']) {
        await a.rows('BEGIN')
        const text = `SELECT seq FROM ${table} WHERE name = 'cart:7#${named}' FOR UPDATE`
        await a.rows(text)
        const waits = sends(b, text)
        const wanted = (tree: LockTree) => tree.sessions.find(({ pid }) => pid === b.id)?.waitsFor
        const tree = await treeWhere(
          observer,
          `it waits for a row of ${table}`,
          (seen) => wanted(seen)?.name.endsWith(table) === true,
        )
        expect(wanted(tree)).toMatchObject({ kind: 'row', source: 'catalogue' })
        await a.rows('ROLLBACK')
        await waits
        await b.all('ROLLBACK', 'BEGIN')
      }
      await a.rows(`DELETE FROM holdfast_lock WHERE name LIKE '%${named}'`)
    })

    test('without the table of locks there is a tree all the same', async () => {
      const watcher = await place.open()
      const [a, b] = (await sessions(2)) as [InnodbSession, InnodbSession]
      await watcher.rows('RENAME TABLE holdfast_lock TO away')
      const observer = createObserver(place.driver())
      await a.rows(lockText(12))
      const waits = sends(b, lockText(12))
      expect(edgesOf(await treeWith(observer, 1))).toEqual([`${b.id} hard ${a.id}`])
      await a.rows('ROLLBACK')
      await waits
      await watcher.rows('RENAME TABLE away TO holdfast_lock')
    })
  })

  test('ALTER TABLE behind a transaction, and who queues behind it', async () => {
    const observer = createObserver(place.driver())
    const [a, b, c] = (await sessions(3)) as [InnodbSession, InnodbSession, InnodbSession]
    await a.rows('SELECT v FROM t WHERE id = 1')
    await b.rows('ROLLBACK')
    const alters = sends(b, 'ALTER TABLE t ADD COLUMN w INT')
    await treeWith(observer, 1)
    const reads = sends(c, 'SELECT v FROM t WHERE id = 2')
    const tree = await treeWith(observer, 2)
    const waiter = sessionOf(tree, b)
    if (place.isMariadb) {
      // It says that they wait and not for whom, and so do we.
      expect(edgesOf(tree)).toEqual([])
      expect(tree.roots.toSorted((x, y) => x - y)).toEqual([b.id, c.id])
      expect(waiter.advice).toMatchObject([{ code: 'blocker-not-told' }])
    } else {
      expect(edgesOf(tree)).toEqual([`${b.id} hard ${a.id}`, `${c.id} soft ${b.id}`].toSorted())
      expect(waiter.waitsFor).toMatchObject({ kind: 'table', mode: 'EXCLUSIVE' })
      expect(tree.roots).toEqual([a.id])
    }
    await a.rows('ROLLBACK')
    await alters
    await reads
    await c.rows('ROLLBACK')
    await b.rows('ALTER TABLE t DROP COLUMN w')
  })

  test.runIf(place.isMariadb)(
    'several that have written nothing have one number: who of them it is is not made up',
    async () => {
      const observer = createObserver(place.driver())
      const [a, b, c] = (await sessions(3)) as [InnodbSession, InnodbSession, InnodbSession]
      await a.rows('SELECT v FROM t WHERE id = 13 LOCK IN SHARE MODE')
      const waits = sends(c, 'UPDATE t SET v = 1 WHERE id = 13')
      expect(edgesOf(await treeWith(observer, 1))).toEqual([`${c.id} hard ${a.id}`])
      await b.rows('SELECT v FROM t WHERE id = 14 LOCK IN SHARE MODE')
      const tree = await treeWhere(observer, 'both are seen', (seen) => edgesOf(seen).length === 0)
      expect(sessionOf(tree, c).advice).toMatchObject([{ code: 'blocker-not-told' }])
      await a.rows('ROLLBACK')
      await waits
      await b.rows('ROLLBACK')
    },
  )

  test('a transaction that is prepared holds on without a session', async () => {
    const observer = createObserver(place.driver())
    const a = await place.open()
    await a.all(
      "XA START 'x1'",
      'UPDATE t SET v = 1 WHERE id = 15',
      "XA END 'x1'",
      "XA PREPARE 'x1'",
    )
    await a[Symbol.asyncDispose]()
    const b = await place.open()
    const waits = sends(b, 'UPDATE t SET v = 2 WHERE id = 15')
    const tree = await treeWhere(observer, 'it is seen without a session', (seen) =>
      edgesOf(seen).includes(`${b.id} hard 0`),
    )
    expect(tree.roots).toEqual([0])
    expect(tree.sessions[0]).toMatchObject({ pid: 0, state: 'prepared' })
    expect(tree.sessions[0]?.advice.map(({ code }) => code)).toContain('prepared-transaction')
    const other = await place.open()
    await other.rows("XA ROLLBACK 'x1'")
    await waits
  })

  test('transactions that no session has, and sessions that have chosen no database, are told', async () => {
    const observer = createObserver(place.driver())
    const database = new URL(place.url()).pathname.slice(1)
    for (const id of ['p1', 'p2']) {
      const session = await place.open()
      await session.all(
        `XA START '${id}'`,
        `UPDATE t SET v = 1 WHERE id = ${id === 'p1' ? 21 : 22}`,
        `XA END '${id}'`,
        `XA PREPARE '${id}'`,
      )
      await session[Symbol.asyncDispose]()
    }
    const without = await place.open({ database: '' })
    await without.all('BEGIN', `UPDATE ${database}.t SET v = 1 WHERE id = 23`)
    const longest = await waitUntil(
      'both are seen',
      async () => {
        const seen = await observer.transactions()
        const pids = seen.longest.map(({ pid }) => pid)
        return pids.includes(0) && pids.includes(without.id) ? seen.longest : undefined
      },
      { everyMs },
    )
    const prepared = longest.filter(({ pid }) => pid === 0)
    expect(prepared).toMatchObject([{ state: 'prepared', query: 'XA PREPARE' }])
    expect(prepared[0]?.transactionMs).toBeGreaterThanOrEqual(0)
    // Control: whoever has chosen another database is none of this one.
    await without.all('ROLLBACK', 'USE mysql', 'BEGIN', `SELECT v FROM ${database}.t`)
    await waitUntil(
      'it is not told',
      async () =>
        (await observer.transactions()).longest.every(({ pid }) => pid !== without.id) || undefined,
      { everyMs },
    )
    await without.all('ROLLBACK', "XA ROLLBACK 'p1'", "XA ROLLBACK 'p2'")
    await waitUntil(
      'they are gone',
      async () => (await observer.transactions()).longest.length === 0 || undefined,
      { everyMs },
    )
  })

  test('holders in a table of many locks are told, or it is said that not all were looked at', async () => {
    const driver = place.driver()
    const observer = createObserver(driver)
    const session = await place.open()
    // Behind all of them in the order of the key.
    const key = lockKey('zzz', 1)
    const [inside, over] = [deferred(), deferred()]
    const fill = async (count: number): Promise<void> => {
      await session.rows('DELETE FROM holdfast_lock')
      await session.rows(`INSERT INTO holdfast_lock (name, seq, stamp, conn, since)
        WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        SELECT CONCAT('a:', a.i, '.', b.i), 1, 1, 1, 1 FROM n a JOIN n b ON b.i <= ${count / 1_000}`)
    }
    await fill(20_000)
    const holding = createHoldfast(driver).guard(key, async () => {
      inside.resolve()
      await over.promise
    })
    await inside.promise
    const tree = await treeWhere(observer, 'the holder is seen', ({ sessions: all }) =>
      all.some(({ holds }) => holds.some(({ name }) => name === 'zzz:1')),
    )
    expect(tree.capped).toBe(false)
    // More than are looked at.
    await session.rows(`INSERT INTO holdfast_lock (name, seq, stamp, conn, since)
      WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
      SELECT CONCAT('b:', a.i, '.', b.i), 1, 1, 1, 1 FROM n a JOIN n b ON b.i <= 81`)
    expect(await observer.locks()).toMatchObject({ capped: true })
    over.resolve()
    await holding
    await session.rows('DELETE FROM holdfast_lock')
  })

  test('keys of once whose rows show the same are told apart, and long ones are seen to be cut', async () => {
    const observer = createObserver(place.driver())
    const long = `${'k'.repeat(70)}`
    const keys = ['pay 1', 'pay/1', 'pay:1', long]
    const hf = createHoldfast(place.driver())
    const names: string[] = []
    for (const key of keys) {
      const [inside, over] = [deferred(), deferred()]
      const first = hf.once(key, async () => {
        inside.resolve()
        await over.promise
      })
      await inside.promise
      const second = hf.once(key, async () => undefined)
      const tree = await treeWith(observer, 1)
      names.push(tree.sessions.find(({ waitsFor }) => waitsFor !== undefined)?.waitsFor?.name ?? '')
      over.resolve()
      await Promise.all([first, second])
      // MariaDB shows what was for a moment.
      await treeWith(observer, 0)
    }
    expect(new Set(names).size).toBe(keys.length)
    expect(names.map((name) => name.replace(/(?<=…)[0-9a-f]{8}$/, '#'))).toEqual([
      'holdfast-once:pay_1…#',
      'holdfast-once:pay_1…#',
      'holdfast-once:pay:1',
      `holdfast-once:${'k'.repeat(63)}…#`,
    ])
  })

  test('what is asked about one session, and the longest transactions', async () => {
    const observer = createObserver(place.driver())
    const [a, b] = (await sessions(2)) as [InnodbSession, InnodbSession]
    await a.rows('SELECT v FROM t WHERE id = 1')
    await b.rows('SELECT v FROM t WHERE id = 1')
    const longest = await waitUntil(
      'both are seen',
      async () => {
        const seen = await observer.transactions({ limit: 5 })
        return seen.longest.length === 2 ? seen.longest : undefined
      },
      { everyMs },
    )
    expect(longest.map(({ pid }) => pid).toSorted((x, y) => x - y)).toEqual([a.id, b.id])
    expect(await observer.session(a.id)).toMatchObject({ pid: a.id, state: 'idle in transaction' })
    const idle = await place.open()
    expect(await observer.session(idle.id)).toMatchObject({
      pid: idle.id,
      state: 'idle',
      holds: [],
    })
    expect(await observer.session(999_999)).toBeUndefined()
    expect(await observer.session(-1)).toBeUndefined()
    for (const session of [a, b]) await session.rows('ROLLBACK')
  })

  test.each(clientNames)('the same through %s', async (client) => {
    await using pool = openClient(client, place.url())
    const observer = createObserver(pool.driver)
    const [a, b] = (await sessions(2)) as [InnodbSession, InnodbSession]
    await a.rows(lockText(18))
    const waits = sends(b, lockText(18))
    const isIt = (tree: LockTree): boolean =>
      edgesOf(tree).join() === `${b.id} hard ${a.id}` && tree.roots.join() === String(a.id)
    const tree = await treeWhere(observer, 'the edge is seen', isIt)
    const { startedAt = '', transactionStartedAt = null, transactionId = '' } = sessionOf(tree, a)
    const seen = { startedAt, transactionStartedAt, transactionId }
    expect(await createInterventions(pool.driver).terminate(a.id, seen)).toBe(true)
    await waits
    await b.rows('ROLLBACK')
  })

  test('another database is shown only where it blocks one of this', async () => {
    const observer = createObserver(place.driver())
    const [a, b, c] = (await sessions(3)) as [InnodbSession, InnodbSession, InnodbSession]
    const database = new URL(place.url()).pathname.slice(1)
    await a.all(
      'ROLLBACK',
      'CREATE DATABASE elsewhere',
      'CREATE TABLE elsewhere.t (id INT PRIMARY KEY) ENGINE=InnoDB',
      'INSERT INTO elsewhere.t VALUES (1)',
    )
    for (const each of [a, b]) await each.all('ROLLBACK', 'USE elsewhere', 'BEGIN')
    const there = 'SELECT id FROM elsewhere.t WHERE id = 1 FOR UPDATE'
    await a.rows(there)
    const waits = sends(b, there)
    await a.seesWaiting(b)
    expect(edgesOf(await observer.locks())).toEqual([])
    await a.rows(`SELECT v FROM ${database}.t WHERE id = 16 FOR UPDATE`)
    const here = sends(c, lockText(16))
    const tree = await treeWith(observer, 2)
    expect(sessionOf(tree, a)).toMatchObject({ database: 'elsewhere', waiters: 2 })
    await a.rows('ROLLBACK')
    await Promise.all([waits, here])
    for (const each of [b, c]) await each.rows('ROLLBACK')
    await a.rows('DROP DATABASE elsewhere')
  })

  test('the session is left as it was, whatever its zone', async () => {
    const observer = createObserver(place.driver())
    const a = await place.open()
    await a.all('BEGIN', lockText(17))
    const tree = await waitUntil(
      'it is seen',
      async () => (await observer.transactions()).longest.find(({ pid }) => pid === a.id),
      { everyMs },
    )
    expect(Math.abs(Date.parse(tree.transactionStartedAt ?? '') - Date.now())).toBeLessThan(30_000)
    expect(tree.transactionMs).toBeLessThan(30_000)
    await a.rows('ROLLBACK')
  })
})
