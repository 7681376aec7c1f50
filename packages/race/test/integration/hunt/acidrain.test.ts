/** Flows after the attacks of the ACIDRain paper: each pair is proposed, and a few of them are proven here. */
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { attacks, huntAttacks, pairOf } from '../../../../../scripts/acidrain/hunt-attacks.ts'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { instrument } from '../../../src/run/connection/instrument.ts'

instrument(pg)

const named = (name: string): boolean => /^(s5|c4) /.test(name)
const few = attacks.filter(({ pair: [name] }) => named(name))

test('of 22 attacks the pair is proposed', async () => {
  const { directUrl: url } = await testDatabase()
  const now = performance.now.bind(performance)
  let later = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + later)
  // The time is over when they are to be proven.
  const onProgress = ({ phase }: { phase: string }): void => {
    if (phase === 'prove') later = 10_000_000
  }
  const report = await huntAttacks(url, { onProgress })
  clock.mockRestore()
  expect(attacks).toHaveLength(22)
  expect(attacks.filter((attack) => pairOf(report, attack)?.verdict !== 'not looked at')).toEqual(
    [],
  )
  // One flow has nothing in common with another one.
  expect(report.apart).toBeGreaterThan(300)
})

test('a check before the lock, and a payment beside an addition, are proven', async () => {
  const { directUrl: url } = await testDatabase()
  const report = await huntAttacks(url, { among: few })
  expect(few.map((attack) => pairOf(report, attack)?.verdict)).toEqual(few.map(() => 'proven'))
})

test('the control: without the search for edges they are not all proven', async () => {
  const { directUrl: url } = await testDatabase()
  const report = await huntAttacks(url, { among: few, parts: { edges: async () => [] } })
  expect(few.map((attack) => pairOf(report, attack)?.verdict)).toContain('refuted')
})
