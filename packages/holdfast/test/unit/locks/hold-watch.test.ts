import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { channel } from 'node:diagnostics_channel'
import { nowhere } from '../../../src/core/locks/call-site.ts'
import type { Executor, Row, TransactionState } from '../../../src/core/driver.ts'
import type { HeldLongEvent } from '../../../src/core/events/event-map.ts'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { postgresLocks } from '../../../src/engines/postgres/locks/taking.ts'
import { HoldWatch, Places } from '../../../src/locks/hold-watch.ts'

/** When the watch speaks and when it asks, on a clock that moves only here. Its question is tried in integration/locks. */
beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

interface Told {
  readonly atMs: number
  readonly level: string
  readonly names: readonly string[]
}

function listening(): Told[] {
  const told: Told[] = []
  const began = performance.now()
  const listen = (message: unknown): void => {
    const { level, names } = message as HeldLongEvent
    told.push({ atMs: performance.now() - began, level, names: names.map((name) => name.slice(2)) })
  }
  const events = channel('holdfast:lock.held-long')
  events.subscribe(listen)
  onTestFinished(() => {
    events.unsubscribe(listen)
  })
  return told
}

/** With what the server says to each look, in turn; the last answer stands. */
function watching(
  answers: readonly (readonly Row[] | Error)[] = [[]],
  { developing = false } = {},
): { readonly watch: HoldWatch; readonly looks: number[]; readonly asked: string[] } {
  const began = performance.now()
  const looks: number[] = []
  const asked: string[] = []
  const alone: Executor = {
    query: async ({ values }) => {
      looks.push(performance.now() - began)
      asked.push(String(values[0]))
      const answer = answers[Math.min(looks.length, answers.length) - 1]
      if (answer instanceof Error) throw answer
      return answer ?? []
    },
  }
  const limits = { heldLongMs: 100, heldTooLongMs: 1_000 }
  return {
    watch: new HoldWatch(postgresLocks, alone, limits, developing, new Places(false)),
    looks,
    asked,
  }
}

const hold = (pid: number, name: string, state?: () => TransactionState) => ({
  pid,
  locks: [{ key: lockKey('k', name), mode: 'exclusive' as const }],
  token: { mode: 'exclusive' as const, space: 1 as const, id: BigInt(pid) },
  site: nowhere,
  state,
})

describe('a transaction of ours', () => {
  test('is told of twice, to the millisecond, and then no more', async () => {
    const told = listening()
    watching().watch.start(hold(1, 'a'), false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(told).toEqual([
      { atMs: 100, level: 'warning', names: ['a'] },
      { atMs: 1_000, level: 'error', names: ['a'] },
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('warns the second time, by a code that can be filtered', async () => {
    watching().watch.start(hold(1, 'a'), false)
    await vi.advanceTimersByTimeAsync(999)
    expect(process.emitWarning).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(process.emitWarning).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining('lock k has been held for 1000 ms'),
      { code: 'HOLDFAST_LOCK_HELD_LONG', detail: '' },
    )
  })

  test('that has ended is not told of, nor if its backend holds another one by then', async () => {
    const told = listening()
    const { watch } = watching()
    const first = watch.start(hold(1, 'a'), false)
    await vi.advanceTimersByTimeAsync(50)
    watch.start(hold(1, 'b'), false)
    watch.end(first)
    const other = watch.start(hold(2, 'c'), false)
    watch.end(other)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(told.map(({ atMs, names }) => [atMs, ...names])).toEqual([
      [150, 'b'],
      [1_050, 'b'],
    ])
  })

  test('that takes more is told of once, with all of it, from its first lock on', async () => {
    const told = listening()
    const { watch } = watching()
    watch.start(hold(1, 'a'), false)
    await vi.advanceTimersByTimeAsync(50)
    watch.start(hold(1, 'b'), true)
    watch.start(hold(2, 'c'), true)
    await vi.advanceTimersByTimeAsync(500)
    expect(told).toEqual([
      { atMs: 100, level: 'warning', names: ['a', 'b'] },
      { atMs: 150, level: 'warning', names: ['c'] },
    ])
  })

  test('does not wait for the time of an older one', async () => {
    const told = listening()
    const { watch } = watching()
    watch.start(hold(1, 'old'), false)
    await vi.advanceTimersByTimeAsync(300)
    watch.start(hold(2, 'young'), false)
    await vi.advanceTimersByTimeAsync(30)
    watch.start(hold(3, 'younger'), false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(told.map(({ atMs, names }) => [atMs, ...names])).toEqual([
      [100, 'old'],
      [400, 'young'],
      [430, 'younger'],
      [1_000, 'old'],
      [1_300, 'young'],
      [1_330, 'younger'],
    ])
  })
})

describe('a transaction of the caller’s', () => {
  const open = (): TransactionState => 'open'

  test('is asked for before it is told of, and only then', async () => {
    const told = listening()
    const { watch, looks, asked } = watching([[{ pid: 7 }]])
    watch.start(hold(7, 'a', open), false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(told.map(({ atMs, level }) => [atMs, level])).toEqual([
      [100, 'warning'],
      [1_000, 'error'],
    ])
    expect(looks).toEqual([100, 1_000])
    expect(JSON.parse(asked[0] as string)).toEqual([{ pid: 7, space: 1, id: '7' }])
  })

  test('that the server does not know of any more is forgotten', async () => {
    const told = listening()
    const { watch, looks } = watching([[{ pid: 8 }]])
    watch.start(hold(7, 'a', open), false)
    watch.start(hold(8, 'b', open), false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(told.map(({ names }) => names)).toEqual([['b'], ['b']])
    expect(looks).toEqual([100, 1_000])
  })

  test('whose client says that it has ended is not asked for', async () => {
    const told = listening()
    const { watch, looks } = watching([[{ pid: 7 }]])
    watch.start(
      hold(7, 'a', () => 'none'),
      false,
    )
    await vi.advanceTimersByTimeAsync(60_000)
    expect([told, looks]).toEqual([[], []])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('after a look that failed is asked for again, not all the time', async () => {
    const told = listening()
    const { watch, looks } = watching([new Error('away'), new Error('away'), [{ pid: 7 }]])
    watch.start(hold(7, 'a', open), false)
    await vi.advanceTimersByTimeAsync(150)
    // Somebody else is due meanwhile.
    watch.start(hold(8, 'b', open), false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(looks.slice(0, 3)).toEqual([100, 1_100, 2_100])
    expect(told.map(({ atMs }) => atMs)).toEqual([2_100, 2_101])
  })

  test('is not asked for where nobody would hear it', async () => {
    const { watch, looks } = watching([[{ pid: 7 }]])
    watch.start(hold(7, 'a', open), false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(looks).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('in development is asked for when there is something to warn of', async () => {
    const { watch, looks } = watching([[{ pid: 7 }]], { developing: true })
    watch.start(hold(7, 'a', open), false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(looks).toEqual([1_000])
    expect(process.emitWarning).toHaveBeenCalledOnce()
  })
})

test('where single locks are taken is worth keeping once one was held too long', async () => {
  const places = new Places(false)
  const limits = { heldLongMs: 100, heldTooLongMs: 1_000 }
  const watch = new HoldWatch(postgresLocks, { query: async () => [] }, limits, false, places)
  watch.start(hold(1, 'a'), false)
  await vi.advanceTimersByTimeAsync(99)
  expect(places.worthIt).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(places.worthIt).toBe(true)
  expect(new Places(true).worthIt).toBe(true)
})
