import { expect, test } from 'vitest'
import type { Progress } from '../../../src/core/model.ts'
import { progressLine } from '../../../src/report/progress.ts'

const at = (milliseconds: number, rest: Partial<Progress> = {}): Progress => ({
  phase: 'search',
  schedules: Math.round(milliseconds / 20),
  classes: 41,
  open: 12,
  bound: 2,
  budget: { schedules: 2000, ms: 20_000 },
  milliseconds,
  ...rest,
})

function screen(isTTY: boolean, columns = 200) {
  const written: string[] = []
  return { isTTY, columns, written, write: (text: string) => written.push(text) }
}

test('a terminal sees one line that is rewritten, and then taken away', () => {
  const stream = screen(true)
  const line = progressLine('upload', stream)
  for (let ms = 0; ms <= 2000; ms += 10) line.update(at(ms))
  line.end()
  expect(stream.written).toHaveLength(12)
  expect(stream.written[0]).toBe(
    '\rupload: searching, 50 runs, 41 classes, 12 open, at most 2 preemptions, 1.0 s (5 % of the budget)\u001b[K',
  )
  expect(stream.written.join('')).not.toContain('\n')
  expect(stream.written.at(-1)).toBe('\r\u001b[K')
})

test('a log sees a line every few seconds', () => {
  const stream = screen(false)
  const line = progressLine('upload', stream)
  for (let ms = 0; ms <= 12_000; ms += 100) line.update(at(ms, { phase: 'random', open: 0 }))
  line.end()
  expect(stream.written).toEqual([
    expect.stringMatching(/^upload: random orders, 250 runs, .* 5\.0 s \(25 % of the budget\)\n$/),
    expect.stringMatching(/10\.0 s/),
  ])
})

test('a short search is not talked about', () => {
  for (const stream of [screen(true), screen(false)]) {
    const line = progressLine('upload', stream)
    line.update(at(900))
    line.end()
    expect(stream.written).toEqual([])
  }
})

test('the line is never wider than the terminal', () => {
  const stream = screen(true, 40)
  progressLine('upload', stream).update(at(1500))
  expect(stream.written[0]?.length).toBe(1 + 39 + 3)
})
