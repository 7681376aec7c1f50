import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { pause } from '../../../src/core/backoff.ts'
import type { Driver } from '../../../src/core/driver.ts'
import { type StartLimits, startedWithin } from '../../../src/tx/started-within.ts'

/** When a wait for a connection is given up, on a clock that moves only here. */
beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Of a client that says nothing while it waits, unless it does so itself. */
function clientWith(connectsWithin = false): Driver<never> {
  return { capabilities: { connectsWithin } } as unknown as Driver<never>
}

/** A transaction that has its connection after so long and is open for so long; when it ended, and how. */
function transacting(
  driver: Driver<never>,
  limits: StartLimits,
  { connectMs, openMs = 0 }: { readonly connectMs: number; readonly openMs?: number },
) {
  const seen: { ran: boolean; endedMs?: number; result?: string; error?: unknown } = { ran: false }
  const began = performance.now()
  const ended = startedWithin(driver, limits, async (starts) => {
    await pause(connectMs, undefined)
    starts()
    seen.ran = true
    await pause(openMs, undefined)
    return 'done'
  })
  ended
    .then(
      (result) => (seen.result = result),
      (error: unknown) => (seen.error = error),
    )
    .then(() => (seen.endedMs = performance.now() - began))
    .catch(() => undefined)
  return seen
}

const limits: StartLimits = { withinMs: 100, patienceMs: 1_000 }

describe('a connection that does not come', () => {
  test('while ours are open the pool is starved, a little after the limit', async () => {
    const driver = clientWith()
    const open = transacting(driver, limits, { connectMs: 1, openMs: 5_000 })
    const another = transacting(driver, limits, { connectMs: 1, openMs: 5_000 })
    await vi.advanceTimersByTimeAsync(10)
    const waiting = transacting(driver, limits, { connectMs: 2_000 })
    await vi.runAllTimersAsync()
    expect(waiting).toMatchObject({
      ran: false,
      endedMs: 120,
      error: {
        code: 'POOL_STARVED',
        details: { subject: '2 in transactions of Holdfast', held: { transactions: 2 } },
      },
    })
    expect([open.result, another.result]).toEqual(['done', 'done'])
  })

  test('with none of ours open the whole patience is waited', async () => {
    const waiting = transacting(clientWith(), limits, { connectMs: 2_000 })
    await vi.runAllTimersAsync()
    expect(waiting).toMatchObject({
      ran: false,
      endedMs: 1_020,
      error: {
        code: 'CONNECTION_UNAVAILABLE',
        details: { subject: expect.stringContaining('none within 1000 ms') },
      },
    })
  })

  test('one of ours that has ended is not counted', async () => {
    const driver = clientWith()
    transacting(driver, limits, { connectMs: 1, openMs: 50 })
    const waiting = transacting(driver, limits, { connectMs: 2_000 })
    await vi.runAllTimersAsync()
    expect(waiting.error).toMatchObject({ code: 'CONNECTION_UNAVAILABLE' })
  })

  test('one that was never open is not counted either', async () => {
    const driver = clientWith()
    transacting(driver, limits, { connectMs: 3_000 })
    await vi.runAllTimersAsync()
    const [open, waiting] = [
      transacting(driver, limits, { connectMs: 1, openMs: 5_000 }),
      transacting(driver, limits, { connectMs: 2_000 }),
    ]
    await vi.runAllTimersAsync()
    expect(open.result).toBe('done')
    expect(waiting.error).toMatchObject({ details: { held: { transactions: 1 } } })
  })

  test('patience that is shorter counts, and without a limit it alone', async () => {
    for (const withinMs of [100, undefined]) {
      const waiting = transacting(clientWith(), { withinMs, patienceMs: 50 }, { connectMs: 2_000 })
      await vi.runAllTimersAsync()
      expect(waiting).toMatchObject({ endedMs: 70, error: { code: 'CONNECTION_UNAVAILABLE' } })
    }
  })
})

test('a body that has begun is waited for, however long it takes', async () => {
  const open = transacting(clientWith(), limits, { connectMs: 90, openMs: 60_000 })
  await vi.runAllTimersAsync()
  expect(open).toEqual({ ran: true, result: 'done', endedMs: 60_090 })
})

test('what fails before it has begun leaves no timer behind', async () => {
  const failing = startedWithin(clientWith(), limits, async () => {
    throw new Error('refused')
  })
  await expect(failing).rejects.toThrow('refused')
  expect(vi.getTimerCount()).toBe(0)
})

test('a client that keeps the limit itself is not watched', async () => {
  const waiting = transacting(clientWith(true), limits, { connectMs: 5_000 })
  await vi.runAllTimersAsync()
  expect(waiting).toEqual({ ran: true, result: 'done', endedMs: 5_000 })
})
