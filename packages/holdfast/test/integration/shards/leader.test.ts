import { once } from 'node:events'
import { waitUntil } from '@holdfast/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { createHoldfast } from '../../../src/index.ts'
import { shardedDriver } from '../../../src/shards/index.ts'
import { inTime } from '../../support/in-time.ts'
import { movesFixture } from '../../support/moves-fixture.ts'
import { scopeIn } from '../../support/shards-fixture.ts'

const fixture = movesFixture()

test('S6: a leader by session is told as soon as its bucket moves, and nobody leads beside it', async () => {
  const name = scopeIn('north')
  const events: string[] = []
  const reasons: unknown[] = []
  const stop = new AbortController()
  /** What an application is: a driver and a map of its own. */
  const stand = (who: string): Promise<void> => {
    const driver = shardedDriver(fixture.drivers)
    return createHoldfast(driver)
      .leader({ name, ttl: '1 min', session: driver, retryEvery: 20 })
      .run(
        async (term) => {
          events.push(`${who} begins`)
          if (!term.signal.aborted) await once(term.signal, 'abort')
          reasons.push(term.signal.reason)
          events.push(`${who} ends`)
        },
        { signal: stop.signal },
      )
  }
  const first = stand('first')
  await waitUntil('it leads', () => events.length > 0 || undefined)
  const second = stand('second')
  onTestFinished(async () => {
    stop.abort()
    await Promise.all([first, second])
  })
  const began = performance.now()
  await fixture.moves().move({ buckets: [bucketOf(name)], to: 'south' })
  await waitUntil('it is told, or somebody else leads', () => events.length > 1 || undefined)
  expect(events.slice(0, 2)).toEqual(['first begins', 'first ends'])
  await waitUntil('somebody leads again', () => events[2])
  inTime(performance.now() - began, 15_000)
  expect(reasons[0]).toMatchObject({ code: 'LEASE_LOST', details: { reason: 'moved' } })
})
