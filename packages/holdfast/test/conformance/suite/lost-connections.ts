import { setImmediate as turnOfLoop, setTimeout as after } from 'node:timers/promises'
import { deferred, waitUntil } from '@holdfast/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { legacyKey } from '../../../src/core/locks/lock-key.ts'
import { createLocks } from '../../../src/entries/locks.ts'
import { createRows, type Rows } from '../../../src/entries/rows.ts'
import { createTransactions } from '../../../src/tx/index.ts'
import { breakableWire } from '../../support/breakable-wire.ts'
import type { Harness } from './harness.ts'
import {
  pidOf,
  portOf,
  rejection,
  type Setting,
  terminate,
  waitingForLock,
  watchSockets,
} from './setting.ts'

const settings = { scopes: [] }

/**
 * A backend killed under a transaction: the error says whether it may have been committed, and the
 * process lives on. An unhandled `error` event or rejection fails the run, whatever a test expects.
 */
export function lostConnections<Tx>(at: Setting<Tx>): void {
  const insert = (id: string): string => `INSERT INTO account VALUES ('${id}', 1)`

  /** Runs a transaction whose backend is killed while the body does something else. */
  async function killedWhileIdle(
    id: string,
    afterwards: (harness: Harness<Tx>, tx: Tx) => Promise<unknown>,
  ): Promise<Error & { code?: string }> {
    const sockets = watchSockets()
    const harness = await at.another()
    const pid = deferred<number>()
    const killed = deferred()
    const finished = deferred()
    const transaction = harness.driver.transaction(async ({ native }) => {
      await harness.run(native, insert(id))
      pid.resolve(await pidOf(harness, native))
      await killed.promise
      try {
        await afterwards(harness, native)
      } finally {
        finished.resolve()
      }
    }, settings)
    const outcome = rejection(transaction)
    const port = await portOf(at.observer, await pid.promise)
    await terminate(at.observer, await pid.promise)
    await sockets.closed(port)
    killed.resolve()
    const error = await outcome
    // The body goes on after some clients have rejected; see it out, for what it might break.
    await finished.promise
    await nextTurn()
    await usableAgain(harness)
    return error
  }

  const ways: Record<string, (harness: Harness<Tx>, tx: Tx) => Promise<unknown>> = {
    'runs a statement': async (harness, tx) => await harness.run(tx, 'SELECT 1 AS one'),
    returns: async () => undefined,
    'swallows the error of a statement': async (harness, tx) =>
      await harness.run(tx, 'SELECT 1 AS one').catch(() => undefined),
    'takes a lock': async (harness, tx) =>
      await createLocks(harness.driver, { watch: false }).acquire(tx, legacyKey.bigint(813)),
    'locks a row': async (harness, tx) =>
      await (createRows(harness.driver) as Rows<unknown>).lock(tx, 'account', ['nobody']),
    'opens a savepoint': async (harness, tx) =>
      await harness.driver
        .join(tx)
        .nested(async (inner) => await inner.query({ text: 'SELECT 1 AS one', values: [] })),
  }

  describe.each(Object.entries(ways))('killed while idle, then the body %s', (way, afterwards) => {
    test('CONNECTION_LOST, and nothing is saved', async () => {
      const error = await killedWhileIdle(`idle: ${way}`, afterwards)
      expect(error.code).toBe('CONNECTION_LOST')
      expect(await at.balance(`idle: ${way}`)).toBeUndefined()
    })
  })

  test('killed while idle, then the body throws: an error, and nothing is saved', async () => {
    const own = new Error('mine')
    const error = await killedWhileIdle('idle: throws', async () => await Promise.reject(own))
    if (error !== own) expect(error.code).toBe('CONNECTION_LOST')
    expect(await at.balance('idle: throws')).toBeUndefined()
  })

  test('T9: a body that is run again does not meet itself', async () => {
    const sockets = watchSockets()
    const harness = await at.another()
    const pid = deferred<number>()
    const killed = deferred()
    let running = 0
    const met: number[] = []
    const transaction = createTransactions(harness.driver).run(async (tx, { attempt }) => {
      running += 1
      met.push(running)
      try {
        if (attempt > 1) return
        pid.resolve(await pidOf(harness, tx))
        await killed.promise
        // Time in which another attempt would begin, if it did not wait: pauses are below 20 ms.
        for (let turn = 0; turn < 40; turn += 1) await after(1)
      } finally {
        running -= 1
      }
    })
    const port = await portOf(at.observer, await pid.promise)
    await terminate(at.observer, await pid.promise)
    await sockets.closed(port)
    killed.resolve()
    await transaction
    expect(met).toEqual([1, 1])
  })

  test('killed while waiting for a lock: CONNECTION_LOST', async () => {
    const harness = await at.another()
    const rival = await at.rival()
    await rival.query('SELECT pg_advisory_xact_lock(814)')
    const locks = createLocks(harness.driver, { watch: false })
    const once = { retry: false } as const
    const outcome = rejection(locks.guard(legacyKey.bigint(814), async () => undefined, once))
    await terminate(at.observer, await waitingForLock(at.observer))
    expect((await outcome).code).toBe('CONNECTION_LOST')
    await usableAgain(harness)
  })

  test('killed while COMMIT is in flight: COMMIT_UNKNOWN', async () => {
    const harness = await at.another()
    const rival = await at.rival()
    await rival.query('SELECT pg_advisory_xact_lock(815)')
    const outcome = rejection(
      harness.driver.transaction(async ({ native }) => {
        await harness.run(native, 'INSERT INTO slow VALUES (815)')
      }, settings),
    )
    await terminate(at.observer, await waitingForLock(at.observer))
    const error = await outcome
    expect(error.code).toBe('COMMIT_UNKNOWN')
    expect(error.name).toBe('UnknownOutcomeError')
    const { rows } = await at.observer.query('SELECT FROM slow')
    expect(rows).toEqual([])
    await usableAgain(harness)
  })

  describe('the network breaks', () => {
    /** A client whose connections all lead through a wire that can be broken. */
    async function onWire(): Promise<{ harness: Harness<Tx>; broken(): void }> {
      const wire = await breakableWire(at.url)
      const harness = await at.another(wire.url)
      onTestFinished(async () => await wire[Symbol.asyncDispose]())
      return { harness, broken: wire.reset }
    }

    test('while a statement runs: CONNECTION_LOST', async () => {
      const { harness, broken } = await onWire()
      await (await at.rival()).query('SELECT pg_advisory_xact_lock(816)')
      const outcome = rejection(
        harness.driver.transaction(async ({ native }) => {
          await harness.run(native, 'SELECT pg_advisory_xact_lock(816) IS NOT NULL AS taken')
        }, settings),
      )
      await waitingForLock(at.observer)
      broken()
      expect((await outcome).code).toBe('CONNECTION_LOST')
      await usableAgain(harness)
    })

    test('while COMMIT is in flight: COMMIT_UNKNOWN', async () => {
      const { harness, broken } = await onWire()
      const rival = await at.rival()
      await rival.query('SELECT pg_advisory_xact_lock(817)')
      const outcome = rejection(
        harness.driver.transaction(async ({ native }) => {
          await harness.run(native, 'INSERT INTO slow VALUES (817)')
        }, settings),
      )
      await waitingForLock(at.observer)
      broken()
      expect((await outcome).code).toBe('COMMIT_UNKNOWN')
      // And indeed: nobody told the server, which goes on and commits.
      await rival.query('COMMIT')
      await waitUntil('the commit has happened', async () => {
        const { rows } = await at.observer.query('SELECT FROM slow WHERE id = 817')
        return rows.length > 0 || undefined
      })
      await usableAgain(harness)
    })

    test.each([
      { message: 'read ECONNRESET', code: 'ECONNRESET', syscall: 'read' },
      { message: 'terminating connection due to administrator command', code: '57P01' },
      { message: 'Connection terminated unexpectedly' },
      { message: 'write CONNECTION_CLOSED 127.0.0.1:5432', code: 'CONNECTION_CLOSED' },
      { message: "Can't reach database server", code: 'P1001' },
      { message: 'Server has closed the connection.', kind: 'ConnectionClosed' },
    ])('of somebody else in the body comes out as it is: $message', async (lost) => {
      const { driver } = at.harness
      const own = Object.assign(new Error(lost.message), lost)
      const ran: number[] = []
      const error = await rejection(
        createTransactions(driver).run(async (_, { attempt }) => {
          ran.push(attempt)
          await Promise.reject(own)
        }),
      )
      expect(error).toBe(own)
      expect(ran).toEqual([1])
    })
  })

  /** The pool may still hand out what has died; then the next connection is a good one. */
  async function usableAgain(harness: Harness<Tx>): Promise<void> {
    await waitUntil('the client works again', async () => {
      const work = harness.driver.transaction(async (transaction) => {
        return await transaction.query({ text: 'SELECT true AS works', values: [] })
      }, settings)
      const rows = await work.catch(() => [])
      return rows[0]?.['works'] === true || undefined
    })
  }
}

/** Gives what was scheduled its turn; a crash by a late write happens there. */
async function nextTurn(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await turnOfLoop()
}
