import { describe, expect, test } from 'vitest'
import { isOn, lengthOf, millisecondsOf } from '../../../src/health/setting-value.ts'

describe('a value as somebody wrote it', () => {
  test.each([
    ['0', 0],
    ['5000', 5_000],
    ['5s', 5_000],
    [' 0.5 min ', 30_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    ['500us', 0.5],
    ['5 parsecs', Number.NaN],
    ['soon', Number.NaN],
  ])('%s is so many milliseconds', (value, ms) => {
    expect(millisecondsOf(value)).toBe(ms)
  })

  test('is a switch that is on, or not', () => {
    for (const value of ['on', 'ON', 'true', 'tr', 'yes', 'y', '1']) expect(isOn(value)).toBe(true)
    for (const value of ['off', 'of', 'false', 'no', '0', '']) expect(isOn(value)).toBe(false)
  })
})

test.each([
  [0, '0 ms'],
  [1_999, '1999 ms'],
  [90_000, '90 s'],
  [120_000, '2 min'],
  [3 * 3_600_000, '3 hours'],
  [72 * 3_600_000, '3 days'],
])('%i ms is told as %s', (ms, told) => {
  expect(lengthOf(ms)).toBe(told)
})
