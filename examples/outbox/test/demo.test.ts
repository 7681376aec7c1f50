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
    !/Holdfast (?:delivered|did not)/.test(error.message)
  const often = { timeout: 240_000, retry: { count: 2, condition: chance } }

  test('shows the damage by hand and none with claims', often, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', fromSource, demo, '--rounds', '1'],
      { env: { ...process.env, DATABASE_URL: inject('postgresUrl') } },
    )
    const row = (label: string): number[] =>
      (new RegExp(String.raw`^${label} +(\d+) +(\d+)$`, 'm').exec(stdout) ?? [])
        .slice(1)
        .map(Number)
    expect(row('delivered')[1]).toBe(row('messages')[1])
    expect(row('delivered more than once')[0]).toBeGreaterThan(0)
    expect(row('delivered more than once')[1]).toBe(0)
    expect(row('cents charged too much')[1]).toBe(0)
  })
})

describe('the demo fails', () => {
  const fine: Measured = { messages: 9, delivered: 9, deliveredTwice: 0, centsTooMuch: 0 }
  const damaged: Measured = { ...fine, deliveredTwice: 2, centsTooMuch: 200 }

  test('if claims deliver twice, or not at all', () => {
    expect(faults(damaged, damaged)).toHaveLength(1)
    expect(faults(damaged, { ...fine, delivered: 8 })).toHaveLength(1)
  })

  test('if nothing happens by hand', () => {
    expect(faults(fine, fine)).toHaveLength(1)
  })

  test('and not otherwise', () => {
    expect(faults(damaged, fine)).toEqual([])
  })
})
