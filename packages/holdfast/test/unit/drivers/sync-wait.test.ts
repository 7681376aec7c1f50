import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import {
  hearing,
  hearNotice,
  hearPool,
  SyncWatch,
  unlessHeard,
} from '../../../src/drivers/parts/sync-wait.ts'

/** What counts as a cancelled wait for the standby. That PostgreSQL says so is tried in conformance/sync-wait. */
const unsynced = { code: 'COMMIT_UNKNOWN', details: { reason: 'unsynced' } }
const cancelled = { routine: 'SyncRepWaitForLSN', message: 'in any language' }
const inWords = { message: 'canceling wait for synchronous replication due to user request' }
const others: readonly unknown[] = [
  undefined,
  null,
  {},
  { message: 7 },
  { message: 'there is no transaction in progress', code: '25P01' },
  // The routine has the word, where a client tells it.
  { routine: 'exec_simple_query', message: inWords.message },
]

/** Whether what is run while this is heard of is known to be synced. */
async function synced(...notices: readonly unknown[]): Promise<boolean> {
  const run = unlessHeard(async () => {
    for (const notice of notices) hearNotice(notice)
    return 'done'
  })
  return await run.then(
    (result) => result === 'done',
    (error: unknown) => {
      expect(error).toMatchObject(unsynced)
      return false
    },
  )
}

describe('a notice that a client tells us of', () => {
  test('ends what is under way as unknown, by its routine or its words', async () => {
    expect(await synced(cancelled)).toBe(false)
    expect(await synced(inWords)).toBe(false)
    expect(await synced(cancelled, cancelled)).toBe(false)
  })

  test.each(others.map((notice) => [notice]))('%o is another one', async (notice) => {
    expect(await synced(notice)).toBe(true)
  })

  test('from before it began is nobody’s', async () => {
    hearNotice(cancelled)
    expect(await synced()).toBe(true)
    expect(hearing()).not.toThrow()
  })
})

test('all connections of a pool are heard, each once', () => {
  const pool = Object.assign(new EventEmitter(), { totalCount: 0 })
  hearPool(pool)
  hearPool(pool)
  const client = new EventEmitter()
  pool.emit('acquire', client)
  pool.emit('acquire', client)
  expect(pool.listenerCount('acquire')).toBe(1)
  expect(client.listenerCount('notice')).toBe(1)
  const assertSynced = hearing()
  client.emit('notice', cancelled)
  expect(assertSynced).toThrow(expect.objectContaining({ code: 'COMMIT_UNKNOWN' }))
})

test.each([undefined, null, {}, { on: () => undefined }])(
  'what is no pool is let be: %o',
  (none) => {
    expect(() => hearPool(none)).not.toThrow()
  },
)

test('nor is anything that only sends events', () => {
  const emitter = new EventEmitter()
  hearPool(emitter)
  expect(emitter.eventNames()).toEqual([])
})

describe('one connection', () => {
  test('says once that a wait was cancelled on it', () => {
    const client = new EventEmitter()
    const watch = new SyncWatch(client)
    watch.assertSynced()
    client.emit('notice', cancelled)
    expect(() => watch.assertSynced()).toThrow(expect.objectContaining({ code: 'COMMIT_UNKNOWN' }))
    watch.assertSynced()
  })

  test('knows a COMMIT that had nothing to commit from one that was not synced', () => {
    const client = new EventEmitter()
    const watch = new SyncWatch(client)
    client.emit('notice', { code: '01000' })
    expect(watch.committedNothing).toBe(false)
    client.emit('notice', { code: '25P01', routine: 'EndTransactionBlock' })
    expect(watch.committedNothing).toBe(true)
    watch.assertSynced()
    const other = new SyncWatch(client)
    client.emit('notice', { ...cancelled, code: '25P01' })
    expect(other.committedNothing).toBe(false)
  })

  test('is let go', () => {
    const client = new EventEmitter()
    new SyncWatch(client).stop()
    expect(client.eventNames()).toEqual([])
    new SyncWatch({}).stop()
  })
})
