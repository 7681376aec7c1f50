import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkLinearizable, type Event, type Sequential } from '../../checks/check-linearizable.ts'

/** A register: a write sets it, a read sees the last write. */
interface Step {
  readonly kind: 'write' | 'read'
  readonly value: number
}

const register: Sequential<number, Step> = {
  initial: 0,
  next(state, { kind, value }) {
    if (kind === 'write') return value
    return value === state ? state : undefined
  },
  nameOf: String,
}

function event(
  kind: Step['kind'],
  value: number,
  began: number,
  ended: number,
  optional = false,
): Event<Step> {
  return { step: { kind, value }, began, ended, optional, name: `${kind} ${value}` }
}

describe('checkLinearizable', () => {
  it('accepts what one order explains', () => {
    const history = [
      event('write', 1, 0, 10),
      event('write', 2, 5, 20),
      event('read', 2, 12, 14),
      event('read', 2, 30, 40),
    ]
    expect(checkLinearizable(history, register).kind).toBe('linearizable')
  })

  it('refuses a read of what was overwritten before it began', () => {
    const history = [event('write', 1, 0, 1), event('write', 2, 2, 3), event('read', 1, 4, 5)]
    expect(checkLinearizable(history, register)).toEqual({
      kind: 'impossible',
      placed: 2,
      stuck: ['read 1'],
    })
  })

  it('lets two that overlap come in either order, but not in both', () => {
    const both = [event('write', 1, 0, 10), event('write', 2, 0, 10)]
    const reads = (first: number, second: number): Event<Step>[] => [
      ...both,
      event('read', first, 11, 12),
      event('read', second, 13, 14),
    ]
    expect(checkLinearizable(reads(1, 1), register).kind).toBe('linearizable')
    expect(checkLinearizable(reads(2, 2), register).kind).toBe('linearizable')
    expect(checkLinearizable(reads(1, 2), register).kind).toBe('impossible')
  })

  it('lets an unknown one happen late, or never', () => {
    const unknown = event('write', 7, 0, Number.POSITIVE_INFINITY, true)
    const late = [unknown, event('read', 0, 1, 2), event('read', 7, 30, 40)]
    expect(checkLinearizable(late, register).kind).toBe('linearizable')
    expect(checkLinearizable([unknown, event('read', 0, 30, 40)], register).kind).toBe(
      'linearizable',
    )
    // But once: it cannot be undone.
    const undone = [unknown, event('read', 7, 1, 2), event('read', 0, 3, 4)]
    expect(checkLinearizable(undone, register).kind).toBe('impossible')
  })

  it('says so when it gives up', () => {
    const writes = Array.from({ length: 12 }, (_, value) => event('write', value + 1, 0, 100))
    const answer = checkLinearizable([...writes, event('read', 99, 0, 100)], register, 50)
    expect(answer.kind).toBe('undecided')
  })

  it('agrees with trying every order', () => {
    const events = fc.array(
      fc.record({
        kind: fc.constantFrom('write' as const, 'read' as const),
        value: fc.integer({ min: 0, max: 2 }),
        began: fc.integer({ min: 0, max: 12 }),
        lasts: fc.integer({ min: 1, max: 8 }),
        optional: fc.boolean(),
      }),
      { maxLength: 6 },
    )
    fc.assert(
      fc.property(events, (facts) => {
        const history = facts.map(({ kind, value, began, lasts, optional }) =>
          event(kind, value, began, optional ? Number.POSITIVE_INFINITY : began + lasts, optional),
        )
        const expected = someOrder(history, 0) ? 'linearizable' : 'impossible'
        expect(checkLinearizable(history, register).kind).toBe(expected)
      }),
      { numRuns: 500 },
    )
  })
})

/** All orders, without any cleverness. */
function someOrder(left: readonly Event<Step>[], state: number): boolean {
  if (left.every(({ optional }) => optional === true)) return true
  return left.some((next) => {
    const others = left.filter((each) => each !== next)
    if (others.some((other) => other.ended < next.began)) return false
    const after = register.next(state, next.step)
    return after !== undefined && someOrder(others, after)
  })
}
