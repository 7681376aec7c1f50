/** The stream: one poll for everybody, only while somebody listens, and only for who may. */
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '@holdfast/testkit'
import { fromPg } from 'holdfast/drivers/pg'
import { createObserver, type LockTree, type Observer } from 'holdfast/observe'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { streamTimes } from '../../src/server/event-stream.ts'
import { eventsOf, openEvents } from '../support/events-of.ts'
import {
  auth,
  bearer,
  codeOf,
  type Database,
  login,
  openDatabase,
  startConsole,
  tokens,
} from '../support/started-console.ts'

let database: Database
beforeAll(async () => {
  database = await openDatabase()
})
afterAll(() => database.end())

/** A real observer whose polls are counted. */
function counted(change: (tree: LockTree) => LockTree = (tree) => tree) {
  const polls = { count: 0 }
  const real = createObserver(database.driver)
  const observer: Observer = {
    ...real,
    locks: async () => {
      polls.count += 1
      return change(await real.locks())
    },
  }
  return { polls, observer }
}

const pollMs = 50

describe('listeners', () => {
  test('are told by one poll, however many they are', async () => {
    const { polls, observer } = counted()
    const one = await startConsole({ observer, auth }, { pollMs })
    const streams = await Promise.all(
      Array.from({ length: 10 }, () => openEvents(one, '/api/events')),
    )
    const ids = await Promise.all(
      streams.map(async ({ next }) => [await next(), await next(), await next()].map((e) => e?.id)),
    )
    const known = new Set(ids.flat())
    // Ten that came one after the other saw the same few trees.
    expect(known.size).toBeLessThanOrEqual(polls.count)
    expect(polls.count).toBeLessThan(10)
    await Promise.all(streams.map(({ close }) => close()))
  })

  test('are the only reason to look: before and after them the database is left alone', async () => {
    const { polls, observer } = counted()
    const one = await startConsole({ observer, auth }, { pollMs })
    await pause(4 * pollMs)
    expect(polls.count).toBe(0)
    const stream = await openEvents(one, '/api/events')
    await stream.next()
    await stream.close()
    // The close travels; then there may be one poll that was under way.
    const resting = await waitUntil('the polls end', async () => {
      const before = polls.count
      await pause(6 * pollMs)
      return polls.count === before ? before : undefined
    })
    expect(resting).toBeGreaterThan(0)
  })

  test('control: with a history that is always kept, it looks without listeners', async () => {
    const { polls, observer } = counted()
    await startConsole({ observer, auth, history: { everyMs: 1_000 } }, { pollMs })
    const seen = await waitUntil('two polls', () => (polls.count >= 2 ? true : undefined))
    expect(seen).toBe(true)
  })

  test('who comes back with the id of the latest tree is not sent it again', async () => {
    const { observer } = counted()
    const one = await startConsole({ observer, auth }, { pollMs: 400 })
    const [first] = await eventsOf(one, '/api/events', { until: 1 })
    const again = await openEvents(one, '/api/events', {
      headers: { ...bearer(tokens.view).headers, 'last-event-id': first?.id ?? '' },
    })
    const other = await openEvents(one, '/api/events')
    expect([(await other.next())?.id, (await again.next())?.id]).toEqual([
      first?.id,
      expect.not.stringMatching(`^${first?.id}$`),
    ])
    await Promise.all([again.close(), other.close()])
  })

  test('are bounded', async () => {
    const { observer } = counted()
    const one = await startConsole({ observer, auth }, { pollMs })
    const streams = await Promise.all(
      Array.from({ length: 50 }, () => openEvents(one, '/api/events')),
    )
    const refused = await one.get('/api/events', bearer(tokens.view))
    expect([refused.status, await codeOf(refused)]).toEqual([503, 'BUSY'])
    await Promise.all(streams.map(({ close }) => close()))
    await waitUntil('there is room again', async () => {
      const stream = await openEvents(one, '/api/events')
      await stream.close()
      return stream.response.status === 200 ? true : undefined
    })
  })

  test('hear of a database that is away, without its address, and of its return', async () => {
    const away = new pg.Pool({ connectionString: 'postgres://me:hunter2@127.0.0.1:1/nowhere' })
    const dead = createObserver(fromPg(away))
    const real = createObserver(database.driver)
    let isAway = true
    const observer = { ...real, locks: () => (isAway ? dead.locks() : real.locks()) }
    const one = await startConsole({ observer, auth }, { pollMs })
    const stream = await openEvents(one, '/api/events')
    const trouble = await stream.next()
    expect(trouble?.event).toBe('trouble')
    expect(JSON.parse(trouble?.data ?? '')).toMatchObject({ error: { code: 'DATABASE_FAILED' } })
    expect(trouble?.data).not.toMatch(/hunter2|127\.0|nowhere/)
    isAway = false
    const back = await waitUntil('a tree', async () => {
      const event = await stream.next()
      return event?.event === 'tree' ? event : undefined
    })
    expect(back.event).toBe('tree')
    await stream.close()
    await away.end()
  })
})

describe('a stream ends', () => {
  const times = { ...streamTimes, heartbeatMs: 20 }

  test('when the session does, and the next one is refused', async () => {
    let nowMs = Date.UTC(2026, 0, 1)
    const one = await startConsole(
      { driver: database.driver, auth },
      { pollMs, streamTimes: times, now: () => nowMs },
    )
    const { cookie } = await login(one, tokens.view)
    const stream = await openEvents(one, '/api/events', { headers: { cookie } })
    expect((await stream.next())?.event).toBe('tree')
    nowMs += 31 * 60_000
    const bye = await waitUntil('the end', async () => {
      const event = await stream.next()
      return event?.event === 'bye' ? event : undefined
    })
    expect(bye.data).toBe('{"reason":"expired"}')
    expect(await stream.next()).toBeUndefined()
    expect((await one.get('/api/events', { headers: { cookie } })).status).toBe(401)
  })

  test('when somebody logs out, in whichever window', async () => {
    const one = await startConsole(
      { driver: database.driver, auth },
      { pollMs, streamTimes: times },
    )
    const { cookie, csrf } = await login(one, tokens.view)
    const stream = await openEvents(one, '/api/events', { headers: { cookie } })
    const headers = { cookie, origin: one.origin, 'x-holdfast-csrf': csrf }
    await one.get('/api/logout', { method: 'POST', headers })
    const bye = await waitUntil('the end', async () => {
      const event = await stream.next()
      return event?.event === 'bye' ? event : undefined
    })
    expect(bye.data).toBe('{"reason":"expired"}')
  })

  test('after its lifetime, so that credentials are looked at again', async () => {
    const one = await startConsole(
      { driver: database.driver, auth },
      { pollMs, streamTimes: { ...times, lifetimeMs: 100 } },
    )
    const events = await eventsOf(one, '/api/events', { until: 1_000 })
    expect(events.at(-1)).toMatchObject({ event: 'bye', data: '{"reason":"lifetime"}' })
  })

  test('when the console is closed', async () => {
    const one = await startConsole({ driver: database.driver, auth }, { pollMs })
    const stream = await openEvents(one, '/api/events')
    await stream.next()
    void one.close()
    const last = await waitUntil('the end', async () => {
      const event = await stream.next().catch(() => undefined)
      return event === undefined || event.event === 'bye' ? { event } : undefined
    })
    expect([undefined, '{"reason":"closing"}']).toContain(last.event?.data)
  })

  test('for who does not read, while others go on', async () => {
    // Trees large enough to fill what lies between us and somebody who does not read.
    const padding = 'x'.repeat(400_000)
    const { polls, observer } = counted((tree) => ({ ...tree, padding }))
    const one = await startConsole(
      { observer, auth },
      { pollMs: 20, streamTimes: { ...times, slowMs: 200 } },
    )
    const deaf = connect(one.port, '127.0.0.1')
    onTestFinished(() => {
      deaf.destroy()
    })
    deaf.pause()
    deaf.write(
      `GET /api/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokens.view}\r\n\r\n`,
    )
    await waitUntil('it is listened', () => (polls.count > 3 ? true : undefined))
    const reading = await openEvents(one, '/api/events')
    expect((await reading.next())?.event).toBe('tree')
    expect((await reading.next())?.event).toBe('tree')
    await reading.close()
    // Nobody listens any more when the deaf one is dropped: the polls end.
    await waitUntil('the polls end', async () => {
      const before = polls.count
      // On a busy machine polls are further apart than this test asked for.
      await pause(2_500)
      return polls.count === before ? true : undefined
    })
  })
})
