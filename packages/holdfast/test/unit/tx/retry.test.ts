import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { pause } from '../../../src/core/backoff.ts'
import { holdfastError } from '../../../src/core/errors.ts'
import type { ErrorCode } from '../../../src/core/error-codes.ts'
import {
  type RetryInfo,
  type RetryPolicy,
  retryDefaults,
  retrying,
  retryTerms,
} from '../../../src/tx/retry.ts'

/** The loop itself, on a clock that stands still unless it is moved: no database takes part in its decisions. */
beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(Math, 'random').mockReturnValue(1)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const sqlState = (code: string): Error => Object.assign(new Error('from the server'), { code })

interface Ran {
  readonly runs: number
  readonly leftMs: readonly number[]
  /** Which attempt each run was said to be. */
  readonly numbers: readonly number[]
  readonly told: readonly RetryInfo[]
  readonly result?: unknown
  readonly error?: unknown
}

/** Runs what fails with these errors, one after the other, each after so long, and then succeeds. */
async function ran(
  errors: readonly Error[],
  policy?: RetryPolicy | false,
  {
    patient = { codes: [] as ErrorCode[], forMs: 0 },
    eachMs = 0,
    signal = undefined as AbortSignal | undefined,
    onRetry = undefined as ((info: RetryInfo) => void) | undefined,
  } = {},
): Promise<Ran> {
  const [left, numbers, told]: [number[], number[], RetryInfo[]] = [[], [], []]
  const going = retrying(
    async (number, leftMs) => {
      left.push(leftMs)
      numbers.push(number)
      if (eachMs > 0) await pause(eachMs, undefined)
      const error = errors[left.length - 1]
      if (error !== undefined) throw error
      return `run ${left.length}`
    },
    {
      policy: retryTerms(policy),
      patient,
      signal,
      onRetry: (info) => {
        told.push(info)
        onRetry?.(info)
      },
    },
  ).then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  )
  await vi.runAllTimersAsync()
  const outcome = await going
  return { runs: left.length, leftMs: left, numbers, told, ...outcome }
}

const many = <T>(count: number, error: T): T[] => Array(count).fill(error)

describe('the terms', () => {
  test('are five attempts within ten seconds, of what leaves nothing behind', () => {
    expect(retryTerms(undefined)).toEqual({
      attempts: 5,
      budgetMs: 10_000,
      baseMs: 20,
      capMs: 1_000,
      on: ['40001', '40P01', 'CONNECTION_LOST'],
    })
  })

  test('false runs once', () => {
    expect(retryTerms(false)).toEqual({ ...retryDefaults, attempts: 1 })
  })

  test.each<[RetryPolicy, object]>([
    [{ attempts: 2 }, { attempts: 2 }],
    [{ budget: '2 s' }, { budgetMs: 2_000 }],
    [{ budgetMs: 300 }, { budgetMs: 300 }],
    [{ on: ['23505'] }, { on: [...retryDefaults.on, '23505'] }],
    [{ onlyOn: ['23505'] }, { on: ['23505'] }],
  ])('%j', (policy, terms) => {
    expect(retryTerms(policy)).toEqual({ ...retryDefaults, ...terms })
  })

  test('two budgets are refused', () => {
    expect(() => retryTerms({ budget: '2 s', budgetMs: 300 })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })

  test('a budget that is none is refused by its name', () => {
    expect(() => retryTerms({ budget: 'soon' as '1 s' })).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        details: expect.objectContaining({ option: 'retry.budget' }),
      }),
    )
  })
})

describe('runs again', () => {
  test.each(['40001', '40P01'])('after %s, and says how it went', async (state) => {
    const error = sqlState(state)
    const { runs, told, result } = await ran([error])
    expect({ runs, result }).toEqual({ runs: 2, result: 'run 2' })
    expect(told).toEqual([{ attempt: 1, error, reason: state, pauseMs: 20 }])
  })

  test('after a lost connection', async () => {
    const { runs, told } = await ran([holdfastError('CONNECTION_LOST')])
    expect([runs, told[0]?.reason]).toEqual([2, 'CONNECTION_LOST'])
  })

  test('not after anything else', async () => {
    const error = sqlState('23505')
    expect(await ran([error])).toMatchObject({ runs: 1, told: [], error })
    const own = new TypeError('of the body')
    expect(await ran([own])).toMatchObject({ runs: 1, told: [], error: own })
  })

  test('as often as it was told to, and gives the reason a name', async () => {
    const error = sqlState('40001')
    const spent = await ran(many(9, error))
    expect(spent).toMatchObject({ runs: 5, error: { code: 'TX_SERIALIZATION', cause: error } })
    expect(spent.error).toMatchObject({ details: { attempts: 5 } })
    const deadlocked = await ran(many(9, sqlState('40P01')), { attempts: 2 })
    expect(deadlocked).toMatchObject({
      runs: 2,
      error: { code: 'TX_DEADLOCK', details: { attempts: 2 } },
    })
    expect(await ran(many(9, error), false)).toMatchObject({ runs: 1, told: [] })
  })

  test('with pauses that double, to the cap', async () => {
    const { told } = await ran(many(9, sqlState('40001')), {
      attempts: 6,
      baseMs: 100,
      capMs: 500,
    })
    expect(told.map(({ pauseMs }) => pauseMs)).toEqual([100, 200, 400, 500, 500])
  })

  test('after a millisecond at least', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const { told } = await ran([sqlState('40001')])
    expect(told[0]?.pauseMs).toBe(1)
  })

  test('never what may have been committed, whatever the policy says', async () => {
    const unknown = holdfastError('COMMIT_UNKNOWN')
    expect(await ran([unknown], { onlyOn: ['COMMIT_UNKNOWN'] })).toMatchObject({
      runs: 1,
      error: unknown,
    })
  })
})

describe('T6: the budget', () => {
  test('counts from the call, the first attempt included', async () => {
    const slow = await ran(many(9, sqlState('40001')), { budgetMs: 300 }, { eachMs: 301 })
    expect(slow).toMatchObject({ runs: 1, error: { code: 'TX_SERIALIZATION' } })
  })

  test('holds to the millisecond: a pause that ends with it is made, one that ends after it is not', async () => {
    const errors = many(9, sqlState('40001'))
    const policy = { baseMs: 100, capMs: 100, attempts: 9 }
    expect((await ran(errors, { ...policy, budgetMs: 300 })).runs).toBe(4)
    expect((await ran(errors, { ...policy, budgetMs: 299 })).runs).toBe(3)
  })
})

describe('what is waited out', () => {
  const patient = {
    codes: ['CONNECTION_UNAVAILABLE', 'COMMIT_UNKNOWN'] as ErrorCode[],
    forMs: 1_000,
  }
  const policy = { baseMs: 100, capMs: 100, attempts: 2 }
  const unavailable = holdfastError('CONNECTION_UNAVAILABLE')
  const unknown = holdfastError('COMMIT_UNKNOWN')

  test('is tried for so long, however many attempts that takes', async () => {
    const spent = await ran(many(99, unavailable), policy, { patient })
    // The tenth pause would end when the time is over.
    expect(spent).toMatchObject({ runs: 10, error: unavailable })
    expect(spent.leftMs).toEqual([1_000, 900, 800, 700, 600, 500, 400, 300, 200, 100])
  })

  test('counts a missing connection from the call', async () => {
    const slow = await ran(many(99, unavailable), policy, { patient, eachMs: 950 })
    expect(slow.runs).toBe(1)
  })

  test('counts a doubt from when it arose', async () => {
    const slow = await ran([unknown], policy, { patient, eachMs: 950 })
    expect(slow).toMatchObject({ runs: 2, result: 'run 2' })
  })

  test('is not counted as an attempt', async () => {
    const { runs, result } = await ran(
      [unavailable, unavailable, unavailable, sqlState('40001')],
      policy,
      { patient },
    )
    expect([runs, result]).toEqual([5, 'run 5'])
  })

  test('does not count in what the body and the error are told', async () => {
    const conflict = sqlState('40001')
    const { numbers, told, error } = await ran(
      [unavailable, unavailable, conflict, unavailable, conflict],
      policy,
      { patient },
    )
    expect(numbers).toEqual([1, 1, 1, 2, 2])
    expect(told.map(({ attempt }) => attempt)).toEqual([1, 1, 1, 2])
    expect(error).toMatchObject({ code: 'TX_SERIALIZATION', details: { attempts: 2 } })
  })

  test('leaves a millisecond to who has no time left', async () => {
    const { leftMs } = await ran([sqlState('40001')], policy, {
      patient: { ...patient, forMs: 50 },
    })
    expect(leftMs).toEqual([50, 1])
  })

  test('with pauses that double as well', async () => {
    const { told } = await ran(many(4, unavailable), { baseMs: 10, capMs: 500 }, { patient })
    expect(told.map(({ pauseMs }) => pauseMs)).toEqual([10, 20, 40, 80])
  })

  test('leaves no doubt where nothing was done', async () => {
    const later = sqlState('23505')
    expect(await ran([unavailable, later], policy, { patient })).toMatchObject({ error: later })
  })

  test('an outcome that was unknown stays so, whatever a later attempt says', async () => {
    const later = sqlState('23505')
    expect(await ran([unknown, later], policy, { patient })).toMatchObject({
      runs: 2,
      error: unknown,
    })
    const second = holdfastError('COMMIT_UNKNOWN')
    const spent = await ran([unknown, ...many(99, second)], policy, { patient })
    expect(spent.error).toBe(unknown)
  })
})

describe('a pause', () => {
  test('ends with the signal, and with its reason', async () => {
    const stop = new AbortController()
    const reason = new Error('enough')
    const { runs, error } = await ran(many(9, sqlState('40001')), undefined, {
      signal: stop.signal,
      onRetry: () => setTimeout(() => stop.abort(reason), 5),
    })
    expect([runs, error]).toEqual([1, reason])
  })

  test('is not begun if who is told throws', async () => {
    const no = new Error('no more')
    const { runs, error } = await ran(many(9, sqlState('40001')), undefined, {
      onRetry: () => {
        throw no
      },
    })
    expect([runs, error]).toEqual([1, no])
  })
})

describe('a policy', () => {
  test('says nothing where it says undefined', () => {
    const none = { attempts: undefined, baseMs: undefined, capMs: undefined, on: undefined }
    expect(retryTerms(none as never)).toEqual(retryDefaults)
  })

  test('may be the smallest that makes sense', () => {
    const least = { attempts: 1, baseMs: 0, capMs: 0 }
    expect(retryTerms(least)).toMatchObject(least)
  })

  test.each<[unknown, string]>([
    [{ attempts: 0 }, 'retry.attempts must be a whole number, 1 or more'],
    [{ attempts: 2.5 }, 'retry.attempts must be a whole number, 1 or more'],
    [{ attempts: Number.NaN }, 'retry.attempts must be a whole number, 1 or more'],
    [{ attempts: '3' }, 'retry.attempts must be a whole number, 1 or more'],
    [{ baseMs: -1 }, 'retry.baseMs must be a number of milliseconds, 0 or more'],
    [{ baseMs: null }, 'retry.baseMs must be a number of milliseconds, 0 or more'],
    [{ capMs: Number.NaN }, 'retry.capMs must be a number of milliseconds, 0 or more'],
    [{ capMs: '5' }, 'retry.capMs must be a number of milliseconds, 0 or more'],
    [{ budgetMs: '1 s' }, 'retry.budgetMs must be a number of milliseconds, 0 or more'],
    [{ budgetMs: -1 }, 'retry.budgetMs must be a number of milliseconds, 0 or more'],
    [{ on: 'LOCK_TIMEOUT' }, "retry.on must be a list of codes like ['40001']"],
    [{ on: null }, "retry.on must be a list of codes like ['40001']"],
    [{ on: [40001] }, "retry.on must be a list of codes like ['40001']"],
    [{ onlyOn: '40001' }, "retry.onlyOn must be a list of codes like ['40001']"],
    [{ onlyOn: null }, "retry.onlyOn must be a list of codes like ['40001']"],
    ...[3, 'no', true, null, []].map((retry): [unknown, string] => [
      retry,
      'retry must be false or an object like { attempts: 3 }',
    ]),
  ])('%j is refused by its name', (policy, subject) => {
    const [option] = subject.split(' ')
    expect(() => retryTerms(policy as RetryPolicy)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', details: { option, subject } }),
    )
  })
})
