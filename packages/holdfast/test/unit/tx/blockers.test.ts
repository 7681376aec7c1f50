import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { pause } from '../../../src/core/backoff.ts'
import type { Executor, Row, Statement } from '../../../src/core/driver.ts'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import {
  type EndedWait,
  holdersOf,
  lookAtHolders,
} from '../../../src/engines/postgres/locks/look-at-holders.ts'

/** What is made of an answer, and of none in time. The statement itself is tried on a server, in integration/waits. */
beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const wanted = [{ key: lockKey('test', 'blockers'), mode: 'exclusive' as const }]
const noTimeouts: Row = { pid: null, lock_ms: null, statement_ms: null }
const holder = (pid: number, ageMs: number): Row => ({
  ...noTimeouts,
  pid,
  application_name: 'app',
  state: 'active',
  query: 'SELECT 1',
  age_ms: String(ageMs),
})

const wait: EndedWait = { limitMs: 1_000, yields: false, budgetMs: undefined, waitedMs: 1_000 }

/** Answers with these rows, or never, and keeps what it was asked. */
function answering(rows: readonly Row[] | Error | undefined): Executor & { asked: Statement[] } {
  const asked: Statement[] = []
  return {
    asked,
    query: async (statement) => {
      asked.push(statement)
      if (rows === undefined) return await Promise.withResolvers<never>().promise
      if (rows instanceof Error) throw rows
      return rows
    },
  }
}

async function endedBy(of: Partial<EndedWait>, rows: readonly Row[] = [noTimeouts]) {
  return (await lookAtHolders(answering(rows), wanted, { ...wait, ...of })).endedBy
}

describe('what ended a wait', () => {
  test('its own limit, as far as two clocks agree', async () => {
    expect(await endedBy({ waitedMs: 1_000 })).toBe('wait')
    expect(await endedBy({ waitedMs: 995 })).toBe('wait')
    expect(await endedBy({ waitedMs: 994, yields: true })).toBe(undefined)
  })

  test('a setting that was reached', async () => {
    const rows = [{ ...noTimeouts, statement_ms: '500' }]
    expect(await endedBy({ waitedMs: 475, yields: true }, rows)).toBe('statement_timeout')
    expect(await endedBy({ waitedMs: 400, yields: true }, rows)).toBe(undefined)
    // The transaction has another one, or it would have been ended long ago.
    expect(await endedBy({ waitedMs: 700, yields: true }, rows)).toBe(undefined)
    const both = [{ ...noTimeouts, statement_ms: '900', lock_ms: '500' }]
    expect(await endedBy({ waitedMs: 500, yields: true }, both)).toBe('lock_timeout')
  })

  test('the client’s own timer, if it has one and nothing else was reached', async () => {
    expect(await endedBy({ waitedMs: 400, budgetMs: 450 })).toBe('client')
    const rows = [{ ...noTimeouts, lock_ms: '400' }]
    expect(await endedBy({ waitedMs: 400, budgetMs: 450 }, rows)).toBe('lock_timeout')
  })

  test('where lock_timeout does not count, statement_timeout, which SET LOCAL may have set', async () => {
    expect(await endedBy({ waitedMs: 400 })).toBe('statement_timeout')
    const rows = [{ ...noTimeouts, statement_ms: '60000' }]
    expect(await endedBy({ waitedMs: 400 }, rows)).toBe('statement_timeout')
    expect(await endedBy({ waitedMs: 400 }, [])).toBe('statement_timeout')
  })

  test('without a limit of its own, only what the settings say', async () => {
    const none = { limitMs: undefined, yields: true, waitedMs: 5_000 }
    expect(await endedBy(none)).toBe(undefined)
    expect(await endedBy(none, [{ ...noTimeouts, lock_ms: '5000' }])).toBe('lock_timeout')
  })

  test('a cancelled statement: by its timeout, if the server or the settings say so', async () => {
    const canceled = { message: 'canceling statement due to statement timeout' }
    expect(await endedBy({ canceled, waitedMs: 10 })).toBe('statement_timeout')
    const foreign = { message: 'Anweisung wird abgebrochen' }
    expect(await endedBy({ canceled: foreign, waitedMs: 5_000 })).toBe(undefined)
    const rows = [{ ...noTimeouts, statement_ms: '400', lock_ms: '10' }]
    expect(await endedBy({ canceled: foreign, waitedMs: 400 }, rows)).toBe('statement_timeout')
    expect(await endedBy({ canceled: foreign, waitedMs: 40 }, rows)).toBe(undefined)
    expect(await endedBy({ canceled: foreign, waitedMs: 40 }, [])).toBe(undefined)
  })
})

describe('who was in the way', () => {
  test('all that were found, the oldest first', async () => {
    const executor = answering([holder(1, 10), holder(2, 20)])
    const { blockers } = await lookAtHolders(executor, wanted, wait)
    expect(blockers.map(({ pid, ageMs }) => [pid, ageMs])).toEqual([
      [2, 20],
      [1, 10],
    ])
    expect(await holdersOf(executor, wanted)).toEqual(blockers)
  })

  test('nobody, where only the settings came back', async () => {
    const executor = answering([noTimeouts])
    expect((await lookAtHolders(executor, wanted, wait)).blockers).toEqual([])
    expect(await holdersOf(executor, wanted)).toEqual([])
  })

  test('who waits for longer than we did counts, by more than the look may be late', async () => {
    const executor = answering([])
    await lookAtHolders(executor, wanted, { ...wait, waitedMs: 400 })
    await holdersOf(executor, wanted)
    expect(executor.asked.map(({ values }) => values.at(-1))).toEqual(['500', '100'])
  })
})

describe('a look', () => {
  test.each([undefined, new Error('no connection')])('without an answer: %s', async (rows) => {
    const executor = answering(rows)
    const [looking, asking] = [
      lookAtHolders(executor, wanted, { ...wait, waitedMs: 400 }),
      holdersOf(executor, wanted),
    ]
    await vi.advanceTimersByTimeAsync(100)
    expect(await looking).toEqual({ blockers: [], endedBy: 'statement_timeout' })
    expect(await asking).toBe(undefined)
    expect(executor.asked.map(({ connectWithinMs }) => connectWithinMs)).toEqual([100, 100])
  })

  test('inside the transaction itself is waited for, also if it is late or fails', async () => {
    const late: Executor = {
      query: async () => {
        await pause(5_000, undefined)
        return [holder(7, 1)]
      },
    }
    const looking = lookAtHolders(late, wanted, wait, true)
    await vi.advanceTimersByTimeAsync(5_000)
    expect((await looking).blockers).toMatchObject([{ pid: 7 }])
    const failing = answering(new Error('the transaction is aborted'))
    expect(await lookAtHolders(failing, wanted, wait, true)).toEqual({
      blockers: [],
      endedBy: 'wait',
    })
    expect(failing.asked[0]).not.toHaveProperty('connectWithinMs')
  })
})
