/** What explore() says, on a real server. */
import { beforeAll, describe, expect, test } from 'vitest'
import { type ExploreOptions, explore } from '../../../src/explore.ts'
import type { Report } from '../../../src/core/model.ts'
import type { Flow } from '../../../src/run/options.ts'
import {
  guardedReserve,
  inTransaction,
  insertWhereNotExists,
  lockBoth,
  naiveClaim,
  naiveReserve,
  naiveTake,
  openShop,
  register,
  serializableTake,
  stock,
} from './shop.ts'

let url: string
beforeAll(async () => {
  url = await openShop()
})

function both(
  one: Flow,
  other: Flow = one,
  options: Partial<ExploreOptions> = {},
): Promise<Report> {
  return explore({ url, seed: stock, flows: { ann: one, bob: other }, ...options })
}

describe('a race', () => {
  test.each([
    ['check and insert', naiveReserve],
    ['read and write back', naiveTake],
    ['claim without a lock', naiveClaim],
    ['one statement that checks and inserts', insertWhereNotExists],
  ])('%s: found within a few runs, without an invariant', async (_, flow) => {
    const { verdict, failure, coverage } = await both(flow)
    expect(verdict).toBe('race')
    expect(failure).toMatchObject({ kind: 'not-serial', reproduced: [5, 5] })
    expect(coverage.schedules).toBeLessThanOrEqual(8)
  })

  test('one statement that checks and inserts: not found if it is not taken apart', async () => {
    // One step each: they are never under way together, and nothing is said about them.
    const { verdict } = await both(insertWhereNotExists, undefined, { autocommit: 'atomic' })
    expect(verdict).toBe('vacuous')
  })

  test('is not there behind a lock', async () => {
    const { verdict, coverage, notes } = await both(guardedReserve)
    expect(verdict).toBe('race-free')
    expect(coverage).toMatchObject({ exhaustive: true, overlapped: true })
    expect(coverage.blockedEpisodes).toBeGreaterThan(0)
    expect(notes).toEqual([])
  })
})

describe('what PostgreSQL refuses is no race', () => {
  test.each([
    ['a serialization failure', serializableTake, '40001'],
    ['a unique violation', register, '23505'],
  ])('%s', async (_, flow, code) => {
    const { verdict, notes } = await both(flow)
    expect(verdict).toBe('race-free')
    expect(notes.map(({ kind }) => kind)).toEqual(['refused', 'refused'])
    expect(notes[0]?.message).toContain(`threw ${code}`)
  })

  test('but a caller that goes on as if nothing had happened makes it one', async () => {
    const swallowing: Flow = async (context) => {
      try {
        return await register(context)
      } catch {
        return 'registered'
      }
    }
    expect((await both(swallowing)).failure?.kind).toBe('not-serial')
  })

  test('a deadlock is counted, or fails if asked', async () => {
    const told = await both(lockBoth(1, 2), lockBoth(2, 1))
    expect(told.verdict).toBe('race-free')
    expect(told.coverage.deadlocks).toBeGreaterThan(0)
    expect(told.notes.map(({ kind }) => kind)).toContain('deadlock')
    const failed = await both(lockBoth(1, 2), lockBoth(2, 1), { deadlocks: 'fail' })
    expect(failed.failure).toMatchObject({ kind: 'deadlock', reproduced: [5, 5] })
    const ordered = await both(lockBoth(1, 2), lockBoth(1, 2), { deadlocks: 'fail' })
    expect(ordered.verdict).toBe('race-free')
  })
})

describe('what is no verdict about races', () => {
  test('an invariant that fails serially', async () => {
    const { verdict, trouble } = await both(guardedReserve, undefined, {
      invariant: async ({ query }) => {
        const rows = await query('SELECT FROM seats')
        if (rows.length > 0) throw new Error('somebody has a seat')
      },
    })
    expect(verdict).toBe('inconclusive')
    expect(trouble).toMatchObject({ kind: 'fails-serially' })
    expect(trouble?.message).toContain('somebody has a seat')
  })

  test('flows that choose by chance', async () => {
    let draws = 0
    const drawing: Flow = ({ pool }) =>
      pool.query(draws++ % 3 === 0 ? 'SELECT FROM seats' : 'SELECT FROM events')
    const { verdict, coverage, notes } = await both(drawing, guardedReserve)
    expect(verdict).toBe('bounded')
    expect(coverage.exhaustive).toBe(false)
    expect(notes.map(({ kind }) => kind)).toContain('nondeterminism')
  })

  test('a budget that is too small', async () => {
    const many = { ann: naiveTake, bob: naiveTake, cid: naiveTake, dan: naiveTake }
    const { verdict, coverage } = await explore({
      url,
      seed: stock,
      flows: many,
      oracle: false,
      invariant: () => Promise.resolve(),
      budget: { schedules: 60, ms: 60_000 },
    })
    expect(verdict).toBe('bounded')
    expect(coverage).toMatchObject({ exhaustive: false, schedules: 60 })
    expect(coverage.missBound?.atMost).toBeLessThan(1)
  })
})

test('values that the program draws are not compared', async () => {
  const drawing = inTransaction(async (client) => {
    await client.query('SELECT FROM events WHERE id = 1 FOR UPDATE')
    const name = `visitor ${Math.random()}`
    await client.query('INSERT INTO seats (event, who) VALUES (1, $1)', [name])
    return name
  })
  const { verdict, notes } = await both(drawing)
  expect(verdict).toBe('race-free')
  expect(notes[0]?.message).toContain('public.seats.who')
})
