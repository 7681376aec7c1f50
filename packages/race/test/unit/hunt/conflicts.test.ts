/** Which calls can meet, and which of them are the likely ones. */
import { expect, test } from 'vitest'
import type { Footprint, Touch } from '../../../src/core/model.ts'
import { meetingOf } from '../../../src/hunt/propose/conflicts.ts'
import type { Profile } from '../../../src/hunt/propose/profile.ts'

const step = (touches: readonly Touch[], writes?: readonly string[]): Footprint => ({
  opaque: false,
  touches,
  isolation: 'read committed',
  ...(writes && { ends: { how: 'commit', writes, locks: writes } }),
})
const profile = (...footprints: Footprint[]): Profile =>
  ({ footprints, steps: [], bound: [] }) as unknown as Profile

const read = (object: string): Footprint => step([{ object, mode: 'read' }])
const update = (object: string): Footprint => step([{ object, mode: 'lock' }], [object])
const lock = (object: string): Footprint => step([{ object, mode: 'lock' }])
const snapshot: Touch = { object: '*', mode: 'read' }

test('two that touch different tables never meet, whatever level they run at', () => {
  const one = profile(read('public.a'), update('public.a'))
  const other = profile({
    ...step([{ object: 'public.b', mode: 'lock' }, snapshot], ['public.b']),
    isolation: 'serializable',
  })
  expect(meetingOf(one, other)).toBeUndefined()
  // The control: a common table is enough.
  expect(meetingOf(one, profile(update('public.a')))).toBeDefined()
})

test('two readers do not meet', () => {
  expect(meetingOf(profile(read('public.a')), profile(read('public.a')))).toBeUndefined()
})

test('different rows of one table meet with other values only', () => {
  const one = profile(update('public.a#id=1'))
  expect(meetingOf(one, profile(update('public.a#id=2')))?.by).toBe('tables')
  expect(meetingOf(one, profile(update('public.a#id=1')))?.by).toBe('rows')
})

test('a read before a write is likelier than one under a lock, and that than none', () => {
  const open = profile(read('public.a'), update('public.a'))
  const inTransaction = profile(
    lock('public.a'),
    read('public.a'),
    step([{ object: 'public.a', mode: 'lock' }], ['public.a']),
  )
  const blind = profile(update('public.a'))
  const scores = [open, inTransaction, blind].map((one) => meetingOf(one, one)?.score ?? 0)
  expect(scores).toEqual(scores.toSorted((a, b) => b - a))
  expect(new Set(scores).size).toBe(3)
  expect(meetingOf(open, open)?.reasons[0]).toBe(
    'reads public.a before it writes, and the other writes it',
  )
  expect(meetingOf(inTransaction, inTransaction)?.reasons[0]).toMatch(/^both lock public\.a/)
})
