import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'
import type { Measured } from '../demo/measure.ts'
import { faults } from '../demo/report.ts'
import { fromSource } from './from-source.ts'

const demo = fileURLToPath(new URL('../demo/demo.ts', import.meta.url))

describe('the demo', () => {
  // Whom a kill hits, and whether that costs the naive one a night, is chance. What Holdfast leaves is not.
  const chance = (error: { readonly message: string }): boolean =>
    !error.message.includes('Holdfast left')
  const often = { timeout: 240_000, retry: { count: 2, condition: chance } }

  test('shows the damage of a lock that is tried and none with Holdfast', often, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', fromSource, demo, '--nights', '4'],
      { env: { ...process.env, DATABASE_URL: inject('postgresUrl') } },
    )
    const row = (label: string): [naive: number, holdfast: number] => {
      const [, naive, holdfast] = new RegExp(
        String.raw`^${label} +(\d+)(?: of 4)? +(\d+)(?: of 4)?$`,
        'm',
      ).exec(stdout) as string[]
      return [Number(naive), Number(holdfast)]
    }
    expect(row('nights done right')[1]).toBe(4)
    expect(row('processes killed at work')[1]).toBeGreaterThan(0)
    for (const label of [
      'nights nobody did',
      'merchants charged more than once',
      'cents charged too much',
    ]) {
      const [naive, holdfast] = row(label)
      expect(naive).toBeGreaterThan(0)
      expect(holdfast).toBe(0)
    }
  })
})

describe('the demo fails', () => {
  const fine: Measured = {
    nights: 6,
    nightsRight: 6,
    nightsLost: 0,
    merchantsChargedTwice: 0,
    centsTooMuch: 0,
    killed: 2,
  }
  const damaged: Measured = {
    ...fine,
    nightsRight: 0,
    nightsLost: 2,
    merchantsChargedTwice: 20,
    centsTooMuch: 18_000,
  }

  test.each([
    ['nightsLost', { nightsLost: 1 }],
    ['merchantsChargedTwice', { merchantsChargedTwice: 1 }],
    ['nightsRight', { nightsRight: 5 }],
    ['killed', { killed: 0 }],
  ] as const)('if Holdfast has the wrong %s', (_, wrong) => {
    expect(faults(damaged, { ...fine, ...wrong })).toHaveLength(1)
  })

  test('if the lock that is tried shows nothing', () => {
    expect(faults(fine, fine)).toHaveLength(2)
  })

  test('and not otherwise', () => {
    expect(faults(damaged, fine)).toEqual([])
  })
})
