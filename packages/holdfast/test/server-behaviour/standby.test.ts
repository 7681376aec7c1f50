import type { PostgresServer } from '@holdfast/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockHolders } from '../../src/engines/postgres/locks/lock-holders.ts'
import { lockRequest, numbered, take } from './support/lock-request.ts'
import { onEveryVersion } from './support/on-every-version.ts'
import { Session } from './support/session.ts'

/** A hot standby hands out advisory locks that nobody else knows of. */
onEveryVersion((place) => {
  let standby: PostgresServer

  beforeAll(async () => {
    standby = await place.server().standby()
  })
  afterAll(async () => {
    await standby.stop('immediate')
  })

  test('by hand, the same key is locked on the primary and on the standby at once', async () => {
    await using primary = await place.open()
    await using there = await Session.open(standby.url())
    await primary.rows('BEGIN; SELECT pg_advisory_xact_lock(1)')
    await there.rows('BEGIN; SELECT pg_advisory_xact_lock(1)')
    expect(await primary.advisoryLocksOf(primary)).toEqual(['1:1'])
    expect(await there.advisoryLocksOf(there)).toEqual(['1:1'])
    const holders = lockHolders(numbered(1), 0)
    expect(await primary.rows(holders.text, holders.values)).toMatchObject([{ pid: null }])
    expect(await there.rows(holders.text, holders.values)).toMatchObject([{ pid: null }])
  })

  test.each([
    { shape: 'one key', ids: [1], attempt: false },
    { shape: 'two keys', ids: [1, 2], attempt: false },
    { shape: 'one key, trying', ids: [1], attempt: true },
    { shape: 'two keys, trying', ids: [1, 2], attempt: true },
  ])('ours takes nothing there and says so: $shape', async ({ ids, attempt }) => {
    await using there = await Session.open(standby.url())
    await there.rows('BEGIN')
    const limitMs = attempt ? undefined : 30_000
    const other = { attempt, limitMs, label: 'cart:1', allowStaleSnapshot: true }
    const answer = await take(there, lockRequest(numbered(...ids), other))
    expect(answer).toMatchObject({ refused: 'LOCK_ON_STANDBY', granted: [], complete: false })
    expect(await there.advisoryLocksOf(there)).toEqual([])

    // Control: the same request on the primary.
    await using primary = await place.open()
    await primary.rows('BEGIN')
    const granted = await take(primary, lockRequest(numbered(...ids), other))
    expect(granted).toMatchObject({ refused: undefined, complete: true })
  })
})
