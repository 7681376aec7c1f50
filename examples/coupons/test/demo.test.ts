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
    !/statements: |Holdfast: /.test(error.message)
  const often = { timeout: 120_000, retry: { count: 2, condition: chance } }

  test('shows codes over their limit, and none with either fix', often, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', fromSource, demo, '--rounds', '2'],
      { env: { ...process.env, DATABASE_URL: inject('postgresUrl') } },
    )
    expect(stdout).toMatch(/^codes over the limit +[1-4] of 4 +0 of 4 +0 of 4$/m)
    expect(stdout).toMatch(/^users over the limit +[0-2] of 2 +0 of 2 +0 of 2$/m)
    expect(stdout).toMatch(/^requests counted twice +\d+ +0 +0$/m)
    expect(stdout).toMatch(/^redemptions +\d+ +10 +10$/m)
  })
})

describe('the demo fails', () => {
  const fine: Measured = {
    codes: 2,
    codesOverLimit: 0,
    usersOverLimit: 0,
    requestsCountedTwice: 0,
    redemptions: 5,
    failed: 0,
  }
  const unguarded: Measured = {
    ...fine,
    codesOverLimit: 2,
    usersOverLimit: 1,
    requestsCountedTwice: 4,
    redemptions: 12,
  }

  test('if a fix lets something through, or nothing', () => {
    expect(faults({ unguarded, byStatements: unguarded, ledger: fine })).toHaveLength(4)
    expect(faults({ unguarded, byStatements: fine, ledger: unguarded })).toHaveLength(4)
    const nothing = { ...fine, redemptions: 0 }
    expect(faults({ unguarded, byStatements: fine, ledger: nothing })).toHaveLength(1)
  })

  test('if nothing happens without it', () => {
    expect(faults({ unguarded: fine, byStatements: fine, ledger: fine })).toHaveLength(1)
  })

  test('and not otherwise', () => {
    expect(faults({ unguarded, byStatements: fine, ledger: fine })).toEqual([])
  })
})
