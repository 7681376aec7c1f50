import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type KeyQueue, KeyQueues, type Place } from '../../../src/core/locks/key-queues.ts'
import { lockKey } from '../../../src/core/locks/lock-key.ts'

const key = lockKey('unit', 1)

describe('the queue of a key', () => {
  test('leaves nothing behind, for 10,000 keys with one that waits and one that gives up', async () => {
    const queues = new KeyQueues()
    const ends: Promise<unknown>[] = []
    for (let number = 0; number < 10_000; number += 1) {
      const id = BigInt(number)
      const first = queues.begin(id, key)
      const abort = new AbortController()
      const gone = queues.wait(first.queue, 60_000, abort.signal)
      const next = queues.wait(first.queue, 60_000, undefined)
      abort.abort(new Error('gone'))
      ends.push(
        gone.catch(() => undefined),
        next.then((place) => queues.leave(place as Place)),
      )
      queues.leave(first)
    }
    await Promise.all(ends)
    expect(queues.size).toBe(0)
    expect(queues.report()).toEqual([])
  })

  test('a place that is over has no say: neither after it has left, nor after it was overtaken', () => {
    const queues = new KeyQueues()
    const first = queues.begin(1n, key)
    queues.leave(first)
    const other = queues.begin(1n, key)
    queues.leave(first)
    expect(queues.of(1n)).toBe(other.queue)
    const instead = queues.overtake(other) as Place
    queues.leave(other)
    expect(queues.of(1n)?.first).toBe(instead)
    expect(queues.overtake(other)).toBeUndefined()
    queues.leave(instead)
    expect(queues.size).toBe(0)
  })

  test('is first come, first served, whoever gives up in between', async () => {
    const choices = fc.array(fc.constantFrom('arrive', 'give up', 'leave'), { maxLength: 60 })
    await fc.assert(
      fc.asyncProperty(choices, fc.infiniteStream(fc.nat()), async (steps, random) => {
        const queues = new KeyQueues()
        const model: { number: number; abort: AbortController }[] = []
        const entered: number[] = []
        const expected: number[] = []
        let place: Place | undefined
        for (const [number, step] of steps.entries()) {
          const queue: KeyQueue | undefined = queues.of(1n)
          if (step === 'arrive' && queue === undefined) place = queues.begin(1n, key)
          else if (step === 'arrive' && queue !== undefined) {
            const abort = new AbortController()
            model.push({ number, abort })
            void queues.wait(queue, 60_000, abort.signal).then(
              (mine) => {
                entered.push(number)
                place = mine as Place
              },
              () => undefined,
            )
          } else if (step === 'give up' && model.length > 0) {
            const at = (random.next().value ?? 0) % model.length
            model.splice(at, 1)[0]?.abort.abort()
          } else if (step === 'leave' && place !== undefined) {
            const next = model.shift()
            if (next !== undefined) expected.push(next.number)
            queues.leave(place)
            if (next === undefined) place = undefined
          }
          // Who enters does so before anything else happens.
          await Promise.resolve()
          await Promise.resolve()
          expect(queues.report()[0]?.waiting.length ?? 0).toBe(model.length)
          expect(entered).toEqual(expected)
        }
        for (const { abort } of model) abort.abort()
      }),
      { numRuns: 200 },
    )
  })
})
