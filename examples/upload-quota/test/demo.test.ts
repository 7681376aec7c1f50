import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'
import type { Measured } from '../demo/measure.ts'
import { faults } from '../demo/report.ts'
import { fromSource } from './from-source.ts'

const demo = fileURLToPath(new URL('../demo/demo.ts', import.meta.url))

describe('the demo', () => {
  // Whether the unprotected one does damage is chance. What the protected one does is not.
  const chance = (error: { readonly message: string }): boolean =>
    !/with the guard/.test(error.message)
  const often = { timeout: 120_000, retry: { count: 2, condition: chance } }

  test('shows users over the limit without the guard and none with it', often, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', fromSource, demo, '--rounds', '3'],
      { env: { ...process.env, DATABASE_URL: inject('postgresUrl') } },
    )
    const [, without, withGuard] = /^users over the limit +(\d+) of 12 +(\d+) of 12$/m.exec(
      stdout,
    ) as string[]
    expect(Number(without)).toBeGreaterThan(0)
    expect(Number(withGuard)).toBe(0)
    expect(stdout).toMatch(/^answered 201 saved +\d+ +12$/m)
    expect(stdout).toMatch(/^bytes over the limit +[\d,]+000,000 +0$/m)
  })
})

describe('the demo fails', () => {
  const plan = { rounds: 1, users: 4, uploads: 8 }
  const run = (usersOver: number, saved: number): Measured => ({
    users: 4,
    answers: new Map([[201, saved]]),
    usersOver,
    bytesOver: usersOver * 1_000_000,
  })

  test('if the guard lets a user through', () => {
    expect(faults(run(4, 20), run(1, 5), plan)).toContainEqual(expect.stringContaining('with the'))
  })

  test('if the race was not provoked', () => {
    expect(faults(run(0, 4), run(0, 4), plan)).toHaveLength(1)
  })

  test('if the guard keeps the limit by refusing everything', () => {
    expect(faults(run(4, 20), run(0, 0), plan)).toHaveLength(1)
  })

  test('and not otherwise', () => {
    expect(faults(run(4, 20), run(0, 4), plan)).toEqual([])
  })
})
