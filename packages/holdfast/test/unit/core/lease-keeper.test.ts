import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LeaseKeeper } from '../../../src/core/lease-keeper.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const lastsMs = 300
const everyMs = 100

/** A lease whose renewals are granted, refused or unanswered, in this order. */
function lease(...answers: readonly ('granted' | 'lost' | 'no answer')[]): {
  readonly keeper: LeaseKeeper
  readonly told: string[]
} {
  const told: string[] = []
  const [left, start] = [[...answers], performance.now()]
  const at = (what: string): void => void told.push(`${what} at ${performance.now() - start}`)
  const keeper = new LeaseKeeper(
    {
      lastsMs,
      everyMs,
      async renew() {
        const sentMs = performance.now()
        const answer = left.shift() ?? 'granted'
        at(answer)
        if (answer === 'no answer') throw new Error('nobody is there')
        if (answer === 'granted') keeper.extend(sentMs)
        else keeper.stop()
      },
      failed: () => at('failed'),
      over() {
        at('over')
        keeper.stop()
      },
    },
    start,
  )
  return { keeper, told }
}

test('a lease is renewed three times before it would end, and goes on as long as renewals are granted', async () => {
  const { keeper, told } = lease()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(told).toEqual(
    Array.from({ length: 10 }, (_, count) => `granted at ${(count + 1) * everyMs}`),
  )
  expect(keeper.deadline - performance.now()).toBe(lastsMs)
})

test('a renewal without an answer is tried again soon, and one that is granted then is enough', async () => {
  const { told } = lease('no answer', 'granted')
  await vi.advanceTimersByTimeAsync(399)
  expect(told.slice(0, 3)).toEqual(['no answer at 100', 'failed at 100', 'granted at 125'])
  expect(told).not.toContainEqual(expect.stringContaining('over'))
})

test('without any answer the lease is over when its time is, counted from the last request that was granted', async () => {
  const { keeper, told } = lease('granted', ...Array<'no answer'>(100).fill('no answer'))
  await vi.advanceTimersByTimeAsync(10_000)
  expect(told.at(-1)).toBe('over at 400')
  expect(keeper.stopped).toBe(true)
})

test('what was stopped is not renewed, not extended and never over', async () => {
  const { keeper, told } = lease()
  keeper.stop()
  keeper.extend(performance.now())
  await vi.advanceTimersByTimeAsync(10_000)
  expect(told).toEqual([])
  const refused = lease('lost')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(refused.told).toEqual(['lost at 100'])
})

test('a holder that renews by itself is only told when the lease is over', async () => {
  const over = vi.fn<() => void>()
  const renew = vi.fn<() => Promise<void>>(async () => undefined)
  const keeper = new LeaseKeeper({ lastsMs, everyMs: undefined, renew, over }, performance.now())
  await vi.advanceTimersByTimeAsync(200)
  keeper.extend(performance.now())
  await vi.advanceTimersByTimeAsync(lastsMs - 1)
  expect(over).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(over).toHaveBeenCalledOnce()
  expect(renew).not.toHaveBeenCalled()
})
