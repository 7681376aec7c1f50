import { expect, test } from 'vitest'
import { type ScheduleOptions, settingsOf } from '../../../src/schedule/options.ts'

function refusal(options: object): unknown {
  const given = { name: 'nightly', handler: () => undefined, ...options }
  try {
    settingsOf(given as unknown as ScheduleOptions<never>, 'here')
    return undefined
  } catch (error) {
    return (error as { readonly details: { readonly subject: string } }).details.subject
  }
}

test('ticks in transactions cannot overlap, and it is said why', () => {
  const guarantee = 'transactional'
  expect(refusal({ guarantee, overlap: 'allow' })).toBe(
    'overlap must be skip or wait: transactional ticks keep the schedule locked, one by one',
  )
  expect(refusal({ guarantee, overlap: 'wait' })).toBeUndefined()
  expect(refusal({ guarantee: 'at-least-once', overlap: 'allow' })).toBeUndefined()
  expect(refusal({ guarantee, overlap: 'never' })).toBe('overlap must be skip, wait or allow')
})
