import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'
import type { Measured } from '../demo/measure.ts'
import { faults } from '../demo/report.ts'
import { fromSource } from './from-source.ts'

const demo = fileURLToPath(new URL('../demo/demo.ts', import.meta.url))

describe('the demo', () => {
  // Whether the unprotected one does damage is chance. What the protected ones do is not.
  const chance = (error: { readonly message: string }): boolean =>
    !/EXCLUDE: |Holdfast: /.test(error.message)
  const often = { timeout: 120_000, retry: { count: 2, condition: chance } }

  test('shows which rule is kept by whom', often, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', fromSource, demo, '--rounds', '2'],
      { env: { ...process.env, DATABASE_URL: inject('postgresUrl') } },
    )
    expect(stdout).toMatch(/^desks booked twice +[1-8] of 8 +0 of 8 +0 of 8$/m)
    expect(stdout).toMatch(/^guests over the limit +[1-8] of 8 +[1-8] of 8 +0 of 8$/m)
    expect(stdout).toMatch(/^bookings +\d+ +\d+ +16$/m)
  })
})

describe('the demo fails', () => {
  const fine: Measured = {
    desks: 4,
    guests: 4,
    desksBookedTwice: 0,
    guestsOverLimit: 0,
    booked: 8,
    failed: 0,
  }
  const unguarded = { ...fine, desksBookedTwice: 3, guestsOverLimit: 3 }
  const byConstraint = { ...fine, guestsOverLimit: 3 }

  test('if a fix lets something through, or nothing', () => {
    expect(faults({ unguarded, byConstraint: unguarded, guarded: fine })).toHaveLength(1)
    expect(faults({ unguarded, byConstraint, guarded: unguarded })).toHaveLength(2)
    expect(faults({ unguarded, byConstraint, guarded: { ...fine, booked: 0 } })).toHaveLength(1)
  })

  test('if nothing happens without it', () => {
    expect(faults({ unguarded: fine, byConstraint, guarded: fine })).toHaveLength(2)
  })

  test('and not otherwise', () => {
    expect(faults({ unguarded, byConstraint, guarded: fine })).toEqual([])
  })
})
