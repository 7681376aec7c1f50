import { describe, expect, test } from 'vitest'
import { atMost, defaultTerms, type Wait, waitTerms } from '../../../src/core/options/wait.ts'

const fallback = defaultTerms(undefined)

describe('a wait', () => {
  test.each([
    ['2 s', { how: 'wait', limitMs: 2_000, yields: false }],
    [750, { how: 'wait', limitMs: 750, yields: false }],
    ['0.5 s', { how: 'wait', limitMs: 500, yields: false }],
    ['nowait', { how: 'nowait' }],
    [0, { how: 'nowait' }],
    ['0 ms', { how: 'nowait' }],
    ['0s', { how: 'nowait' }],
    ['inherit', { how: 'wait', limitMs: undefined, yields: true }],
    [undefined, { how: 'wait', limitMs: 2_000, yields: true }],
  ] as const)('of %s', (given, expected) => {
    expect(waitTerms(given, fallback)).toMatchObject(expected)
  })

  test.each([
    -1,
    1.5,
    Number.NaN,
    2 ** 31,
    Infinity,
    '30 days',
    '2 apples',
    'skip',
    'block',
    '',
    null,
    true,
  ])('of %s is refused, with the forms that are understood', (given) => {
    expect(() => waitTerms(given as Wait, fallback)).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        message: expect.stringContaining("like '2 s', at most 24 days, or 'nowait', or 'inherit'"),
        details: expect.objectContaining({ option: 'wait' }),
      }),
    )
  })

  test('as a default of null is refused too', () => {
    expect(() => defaultTerms(null as never)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })

  test('skip and the old block are for those who know them', () => {
    const words = ['skip', 'block'] as const
    expect(waitTerms('skip', fallback, words)).toEqual({ ...fallback, how: 'skip' })
    // Where calls do not wait, it does not wait for the whole table either.
    expect(waitTerms('skip', waitTerms('nowait', fallback), words).limitMs).toBe(0)
    expect(waitTerms('block', fallback, words)).toEqual(waitTerms('inherit', fallback))
  })

  test('is shortened, never lengthened, and only where there is one', () => {
    expect(atMost(waitTerms('2 s', fallback), 300).limitMs).toBe(300)
    expect(atMost(waitTerms('200 ms', fallback), 300).limitMs).toBe(200)
    expect(atMost(waitTerms('inherit', fallback), 300)).toMatchObject({
      limitMs: 300,
      yields: true,
    })
    expect(atMost(waitTerms('2 s', fallback), -5).limitMs).toBe(1)
    // No end on either side is none, and not a number that the server cannot read.
    expect(atMost(waitTerms('inherit', fallback), Infinity).limitMs).toBeUndefined()
    expect(atMost(waitTerms('200 ms', fallback), Infinity).limitMs).toBe(200)
    expect(atMost(waitTerms('nowait', fallback), 300)).toEqual(waitTerms('nowait', fallback))
    expect(atMost(fallback, undefined)).toEqual(fallback)
  })
})
