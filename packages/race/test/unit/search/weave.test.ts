/** When a step of several statements stands for all orders in which others act between them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dependent } from '../../../src/core/footprint.ts'
import type { Footprint, Run, Step, Touch } from '../../../src/core/model.ts'
import { Weave } from '../../../src/search/classes/weave.ts'
import { modelRunner } from './model-runner.ts'
import { everyInterleaving, flowOf, rows, type Script, shortScripts } from './scripts.ts'

/** Steps of the first flow that count as one: all between BEGIN and the end. */
function isInside({ flow, statements: [text = ''] }: Step): boolean {
  return flow === 0 && !/^(?:begin|commit|rollback)/.test(text)
}

/** Whether the first flow was never left inside, unless it waited. */
function isWhole({ steps, decisions }: Run): boolean {
  const last = steps.findLastIndex(isInside)
  return steps.every((step, index) => {
    if (step.flow === 0 || index > last || !steps.slice(0, index).some(isInside)) return true
    return !decisions[index]?.enabled.some(({ choice }) => choice.flow === 0)
  })
}

/** Names of advisory locks as the runner writes them. */
function named(footprint: Footprint): Footprint {
  const rename = (object: string): string => object.replace(/^advisory (?=\d)/, 'advisory #')
  const touches = footprint.touches.map((touch) => ({ ...touch, object: rename(touch.object) }))
  const { ends } = footprint
  return {
    ...footprint,
    touches,
    ...(ends && { ends: { ...ends, locks: ends.locks.map(rename) } }),
  }
}

/** The run with those steps put together. */
function merged(run: Run): Run {
  const inside = run.steps.filter(isInside)
  const [first] = inside
  if (!first) return run
  const parts = inside.map(({ footprint }) => named(footprint))
  const whole: Step = {
    ...first,
    after: 'T',
    footprint: { ...named(first.footprint), touches: parts.flatMap((part) => part.touches), parts },
  }
  const steps = run.steps.flatMap((step): Step[] => {
    if (step === first) return [whole]
    return isInside(step) ? [] : [{ ...step, footprint: named(step.footprint) }]
  })
  return { ...run, steps }
}

/** Ends of all interleavings, of those that do not go inside, and what is said about that. */
async function compare(
  all: readonly Script[],
): Promise<{ woven: boolean; missed: string[]; inside: number } | undefined> {
  const flows = Object.fromEntries(all.map((script, index) => [`f${index}`, flowOf(script)]))
  const runs = await everyInterleaving(modelRunner(flows, { rows }), 4_000)
  if (runs === undefined) return undefined
  const whole = runs.filter(isWhole)
  const weave = new Weave(dependent)
  for (const run of whole) weave.learn(merged(run))
  const seen = new Set(whole.map(({ digest }) => digest))
  return {
    woven: weave.woven().length > 0,
    missed: runs.map(({ digest }) => digest).filter((digest) => !seen.has(digest)),
    inside: Math.max(...runs.map(({ steps }) => steps.filter(isInside).length)),
  }
}

const numRuns = 500

const explicit = (script: Script): Script =>
  script.isolation === 'autocommit' ? { ...script, isolation: 'read committed' } : script

describe('a step that nobody is said to get into', () => {
  test('ends as all orders do', async () => {
    const count = { kept: 0, lost: 0 }
    await fc.assert(
      fc.asyncProperty(shortScripts, async ([first, ...rest]) => {
        const found = await compare([explicit(first as Script), ...rest])
        if (found === undefined || found.inside < 2) return
        if (!found.woven) {
          expect(found.missed).toEqual([])
          count.kept += 1
        } else if (found.missed.length > 0) count.lost += 1
      }),
      { numRuns, seed: 17 },
    )
    // Both answers are given, and the cost is paid for something.
    expect(count.kept).toBeGreaterThan(numRuns / 10)
    expect(count.lost).toBeGreaterThan(0)
  })
})

describe('what others can do inside', () => {
  const free: Footprint = { opaque: false, touches: [], isolation: 'read committed' }
  const on = (...touches: readonly Touch[]): Footprint => ({ ...free, touches })
  const read = (object: string): Footprint => on({ object, mode: 'read' })
  const commit = (...writes: readonly string[]): Footprint => ({
    ...free,
    ends: { how: 'commit', writes, locks: writes },
  })
  const step = (flow: number, footprint: Footprint, after: Step['after'] = 'I'): Step =>
    ({ flow, lane: 0, footprint, after, half: 'whole', statements: [`of ${flow}`] }) as never
  const woven = (...steps: readonly Step[]): boolean => {
    const weave = new Weave(dependent)
    weave.learn({ steps } as unknown as Run)
    return weave.woven().length > 0
  }
  const both = step(0, { ...free, parts: [read('a'), read('b')] })

  test('a commit of both is seen by half', () => {
    expect(woven(both, step(1, commit('a', 'b')))).toBe(true)
  })

  test('a commit of one of them is before or after', () => {
    expect(woven(both, step(1, commit('a')))).toBe(false)
  })

  test('two commits, in the order of the reads', () => {
    expect(woven(both, step(1, commit('a')), step(1, commit('b')))).toBe(true)
  })

  test('two commits, in the other order, are a place between them', () => {
    expect(woven(both, step(1, commit('b')), step(1, commit('a')))).toBe(false)
  })

  test('of two flows nobody knows which waited for which', () => {
    expect(woven(both, step(1, commit('a')), step(2, commit('b')))).toBe(true)
  })

  const key: Touch = { object: 'advisory #0:1', mode: 'exclusive' }
  test('nobody comes in who needs a lock that was taken before', () => {
    const writes = { ...commit('a', 'b'), touches: [] }
    const other = [step(1, on(key), 'T'), step(1, writes)]
    expect(woven(step(0, on(key), 'T'), both, ...other)).toBe(false)
    expect(woven(both, ...other)).toBe(true)
    const inside = step(0, { ...free, parts: [on(key), read('a'), read('b')] })
    expect(woven(inside, ...other)).toBe(false)
    const tried = [step(1, on(key, { ...key, mode: 'attempt' }), 'T'), step(1, writes)]
    expect(woven(inside, ...tried)).toBe(true)
  })
})
