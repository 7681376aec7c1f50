import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'
import type { Measured } from '../demo/measure.ts'
import { faults } from '../demo/report.ts'
import { monthlyCalls } from '../src/plan.ts'
import { fromSource } from './from-source.ts'

const demo = fileURLToPath(new URL('../demo/demo.ts', import.meta.url))

describe('the demo', () => {
  // Whether the unprotected one does damage is chance. What the protected one does is not.
  const chance = (error: { readonly message: string }): boolean =>
    !/with Holdfast|Holdfast left/.test(error.message)
  const often = { timeout: 240_000, retry: { count: 2, condition: chance } }

  test('shows the damage of the naive way and none with Holdfast', often, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', fromSource, demo, '--rounds', '1'],
      { env: { ...process.env, DATABASE_URL: inject('postgresUrl') } },
    )
    const row = (label: string): [naive: number, holdfast: number] => {
      const [, naive, holdfast] = new RegExp(
        String.raw`^${label} +(\d+)(?: of 4)? +(\d+)(?: of 4)?$`,
        'm',
      ).exec(stdout) as string[]
      return [Number(naive), Number(holdfast)]
    }
    expect(row('requests served')[1]).toBe(4 * monthlyCalls)
    const damage = [
      'users over the limit',
      'calls over the limit',
      'requests charged twice',
      'credits reserved by nobody',
      'users locked out by that',
    ].map(row)
    for (const [naive] of damage) expect(naive).toBeGreaterThan(0)
    for (const [, holdfast] of damage) expect(holdfast).toBe(0)
  })
})

describe('the demo fails', () => {
  const plan = { rounds: 1, users: 4, requests: 20 }
  const fine: Measured = {
    users: 4,
    served: 4 * monthlyCalls,
    usersOver: 0,
    callsOver: 0,
    chargedTwice: 0,
    creditsStuck: 0,
    usersLockedOut: 0,
  }
  const damaged: Measured = {
    users: 4,
    served: 60,
    usersOver: 4,
    callsOver: 20,
    chargedTwice: 9,
    creditsStuck: 320,
    usersLockedOut: 4,
  }

  test.each(['usersOver', 'chargedTwice', 'creditsStuck', 'usersLockedOut'] as const)(
    'if Holdfast has %s',
    (damage) => {
      expect(faults(damaged, { ...fine, [damage]: 1 }, plan)).toHaveLength(1)
    },
  )

  test('if the naive way shows nothing', () => {
    expect(faults(fine, fine, plan)).toHaveLength(3)
  })

  test('if Holdfast keeps the limit by refusing everything', () => {
    expect(faults(damaged, { ...fine, served: 0 }, plan)).toHaveLength(1)
  })

  test('and not otherwise', () => {
    expect(faults(damaged, fine, plan)).toEqual([])
  })
})
