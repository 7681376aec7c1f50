import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { testDatabase } from '../../../packages/holdfast/test/support/database.ts'
import type { Movement } from '../src/audit-trail.ts'
import type { Measured } from '../demo/measure.ts'
import { faults } from '../demo/report.ts'
import { fromSource } from './from-source.ts'

const demo = fileURLToPath(new URL('../demo/demo.ts', import.meta.url))

describe('the demo', () => {
  // Whether the unprotected one does damage is chance. What the protected one does is not.
  const chance = (error: { readonly message: string }): boolean =>
    !/with Holdfast|audit trail/.test(error.message)
  const often = { timeout: 120_000, retry: { count: 2, condition: chance } }

  test('shows the damage of look, check, write, and none with Holdfast', often, async () => {
    const { directUrl } = await testDatabase()
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', fromSource, demo, '--rounds', '2'],
      { env: { ...process.env, DATABASE_URL: directUrl } },
    )
    const row = (label: string): number[] => {
      const [, naive, ledger] = new RegExp(`^${label} +(\\d+) +(\\d+)$`, 'm').exec(stdout) ?? []
      return [Number(naive), Number(ledger)]
    }
    for (const damage of ['orders taken twice', 'pieces sold that were not there']) {
      expect(row(damage)).toEqual([expect.toSatisfy((count: number) => count > 0), 0])
    }
    expect(row('SKUs below zero')[1]).toBe(0)
    expect(row('pieces returned beyond the sale')[1]).toBe(0)
    expect(row('orders that were taken')[1]).toBe(row('answered 201 taken')[1])
    expect(stdout).toMatch(/^ {2}1 [\d:.]{12} credit {5}\+10 {7}10 {2}delivery {5}delivery-1$/m)
    expect(stdout).toMatch(/debit +-\d +\d+ {2}marketplace +order-1-\d+$/m)
  })
})

describe('the demo fails', () => {
  const fine: Measured = {
    answers: new Map([[201, 10]]),
    orders: 10,
    ordersTwice: 0,
    piecesOversold: 0,
    skusBelowZero: 0,
    piecesOverReturned: 0,
  }
  const damaged = { ...fine, ordersTwice: 3, piecesOversold: 7 }
  const movement = (change: number, onHand: number): Movement => ({
    sequence: 1,
    at: new Date(0),
    kind: 'credit',
    change,
    onHand,
    source: '',
    externalId: 'x',
  })
  const trail = [movement(10, 10), movement(-3, 7)]

  test.each([
    ['if the races were not provoked', fine, fine, trail],
    ['if Holdfast oversells', damaged, { ...fine, piecesOversold: 1 }, trail],
    ['if Holdfast takes an order twice', damaged, { ...fine, ordersTwice: 1 }, trail],
    ['if Holdfast goes below zero', damaged, { ...fine, skusBelowZero: 1 }, trail],
    ['if Holdfast takes too much back', damaged, { ...fine, piecesOverReturned: 1 }, trail],
    ['if Holdfast refuses everything', damaged, { ...fine, answers: new Map(), orders: 0 }, trail],
    ['if Holdfast loses an order', damaged, { ...fine, orders: 9 }, trail],
    ['if the trail has a gap', damaged, fine, [movement(10, 10), movement(-3, 6)]],
    ['if there is no trail', damaged, fine, []],
  ])('%s', (_, naive, ledger, movements) => {
    expect(faults(naive, ledger, movements)).toHaveLength(1)
  })

  test('if Holdfast fails', () => {
    const answers = new Map([
      [201, 10],
      [500, 1],
    ])
    expect(faults(damaged, { ...fine, answers }, trail)).toHaveLength(1)
  })

  test('and not otherwise', () => {
    expect(faults(damaged, fine, trail)).toEqual([])
  })
})
