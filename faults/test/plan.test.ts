import { expect, test } from 'vitest'
import { singleFaults } from '../nemesis/index.ts'
import { episodeSeed, planFor, planInTurn } from '../nemesis/plan.ts'

const names = singleFaults.map(({ name }) => name)

test('a seed makes the same plan every time, another seed another one', () => {
  expect(planFor(7, names)).toEqual(planFor(7, names))
  expect(planFor(7, names)).not.toEqual(planFor(8, names))
  expect(planInTurn(7, names, 5)).toEqual(planInTurn(7, names, 5))
})

test('a run of a thousand episodes has a seed for each, and meets every fault often', () => {
  const seeds = Array.from({ length: 1_000 }, (_, number) => episodeSeed(1, number + 1))
  expect(new Set(seeds).size).toBe(1_000)
  const met = new Map(names.map((name) => [name, 0]))
  for (const seed of seeds) {
    const lanes = planFor(seed, names).lanes
    expect(lanes.length).toBeGreaterThanOrEqual(1)
    expect(lanes.length).toBeLessThanOrEqual(4)
    for (const { fault } of lanes.flat()) met.set(fault, (met.get(fault) ?? 0) + 1)
  }
  for (const [name, times] of met) expect([name, times > 60]).toEqual([name, true])
})
