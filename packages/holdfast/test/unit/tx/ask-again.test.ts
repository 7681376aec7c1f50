import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { holdfastError } from '../../../src/core/errors.ts'
import { askAgain, resolveMs, untilTold } from '../../../src/tx/ask-again.ts'

const unknown = holdfastError('COMMIT_UNKNOWN')
/** As a client says it when the connection is gone. */
const broken = Object.assign(new Error('Connection terminated'), { code: 'ECONNRESET' })
const sqlState = (code: string): Error => Object.assign(new Error('from the server'), { code })

/** The shortest pauses that chance can give. */
function withoutPauses(): void {
  const random = vi.spyOn(Math, 'random').mockReturnValue(0)
  onTestFinished(() => random.mockRestore())
}

/** What fails so, one time after the other, and then has an answer. */
function failing(...errors: readonly Error[]): { send: () => Promise<string>; times(): number } {
  let times = 0
  return {
    async send() {
      const error = errors[times]
      times += 1
      if (error !== undefined) throw error
      return 'answer'
    },
    times: () => times,
  }
}

/** Asks for an answer that never comes. */
async function timesAsked(forMs: number): Promise<number> {
  withoutPauses()
  let times = 0
  const asking = askAgain(
    async () => {
      times += 1
      throw unknown
    },
    { forMs },
  )
  await expect(asking).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' })
  return times
}

test('whoever gives one millisecond is asked for nothing twice', async () => {
  expect(await timesAsked(1)).toBe(1)
})

test('whoever gives more is, until that has passed', async () => {
  expect(await timesAsked(100)).toBeGreaterThan(1)
})

test('ten seconds, unless it is said', () => {
  expect([resolveMs({}), resolveMs({ resolveFor: '2 s' })]).toEqual([10_000, 2_000])
  expect(() => resolveMs({ resolveFor: 'long' as '1 s' })).toThrow(
    expect.objectContaining({ details: expect.objectContaining({ option: 'resolveFor' }) }),
  )
})

describe('a lost answer', () => {
  test('is asked for again, and whoever asks is told of the doubt', async () => {
    withoutPauses()
    const onDoubt = vi.fn<() => void>()
    const asked = failing(unknown, unknown)
    expect(await askAgain(asked.send, { forMs: 1_000, onDoubt })).toBe('answer')
    expect([asked.times(), onDoubt.mock.calls.length]).toEqual([3, 2])
  })

  test('is called what it was asked to be called', async () => {
    const asked = failing(broken)
    const asking = askAgain(asked.send, { forMs: 1, unknown: 'LEDGER_OUTCOME_UNKNOWN' })
    await expect(asking).rejects.toMatchObject({ code: 'LEDGER_OUTCOME_UNKNOWN' })
  })

  test('is not asked for where a second time would do it twice', async () => {
    withoutPauses()
    const asked = failing(unknown)
    await expect(askAgain(asked.send, { forMs: 1_000, once: true })).rejects.toBe(unknown)
    expect(asked.times()).toBe(1)
  })

  test.each(['CONNECTION_UNAVAILABLE', 'CONNECTION_LOST'] as const)(
    'what was never sent is sent again, also there: %s',
    async (code) => {
      withoutPauses()
      const onDoubt = vi.fn<() => void>()
      const asked = failing(holdfastError(code))
      expect(await askAgain(asked.send, { forMs: 1_000, once: true, onDoubt })).toBe('answer')
      expect([asked.times(), onDoubt.mock.calls.length]).toEqual([2, 0])
    },
  )

  test.each([
    ['40001', [], 2],
    ['23505', [], 1],
    ['23505', ['23505'], 2],
    ['40001', ['23505'], 2],
  ])('after %s, with %j besides conflicts: %i times', async (state, on, times) => {
    withoutPauses()
    const asked = failing(sqlState(state))
    await askAgain(asked.send, { forMs: 1_000, on }).catch(() => undefined)
    expect(asked.times()).toBe(times)
  })
})

test('what was never sent is sent again for as long, not for as many times', async () => {
  withoutPauses()
  const asked = failing(...Array.from({ length: 8 }, () => holdfastError('CONNECTION_LOST')))
  expect(await askAgain(asked.send, { forMs: 1_000, once: true })).toBe('answer')
  expect(asked.times()).toBe(9)
})

test('a look that changes nothing is lost, not unknown', async () => {
  withoutPauses()
  const asked = failing(...Array.from({ length: 5_000 }, () => broken))
  const asking = askAgain(asked.send, { forMs: 50, unknown: 'CONNECTION_LOST' })
  await expect(asking).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
  expect(asked.times()).toBeGreaterThan(1)
})

describe('a transaction whose end is not known', () => {
  test.each([true, false])(
    'after a doubt, an error of an attempt that was told is its own: %s',
    async (isSure) => {
      withoutPauses()
      const own = new Error('the body said no')
      const asked = failing(unknown, own)
      const asking = untilTold(asked.send, {
        forMs: 1_000,
        isSure: () => isSure && asked.times() === 2,
        onDoubt: vi.fn<() => void>(),
      })
      await expect(asking).rejects.toBe(isSure ? own : unknown)
      expect(asked.times()).toBe(2)
    },
  )

  test('is given up when the time is over', async () => {
    withoutPauses()
    const asked = failing(...Array.from({ length: 5_000 }, () => unknown))
    const onDoubt = vi.fn<() => void>()
    const asking = untilTold(asked.send, { forMs: 50, isSure: () => false, onDoubt })
    await expect(asking).rejects.toBe(unknown)
    expect(asked.times()).toBeGreaterThan(1)
  })

  test('is run until it is told', async () => {
    withoutPauses()
    const onDoubt = vi.fn<() => void>()
    const asked = failing(unknown)
    const told = await untilTold(asked.send, { forMs: 1_000, isSure: () => false, onDoubt })
    expect([told, asked.times(), onDoubt.mock.calls.length]).toEqual(['answer', 2, 1])
  })

  test('is not run again for an error of its own', async () => {
    withoutPauses()
    const own = holdfastError('COMMIT_UNKNOWN')
    const asked = failing(own)
    const asking = untilTold(asked.send, {
      forMs: 1_000,
      isSure: () => true,
      onDoubt: vi.fn<() => void>(),
    })
    await expect(asking).rejects.toBe(own)
    expect(asked.times()).toBe(1)
  })

  test('is not run again after a conflict: that was looked after inside', async () => {
    withoutPauses()
    const asked = failing(sqlState('40001'))
    const asking = untilTold(asked.send, {
      forMs: 1_000,
      isSure: () => false,
      onDoubt: vi.fn<() => void>(),
    })
    await expect(asking).rejects.toMatchObject({ code: 'TX_SERIALIZATION' })
    expect(asked.times()).toBe(1)
  })
})
