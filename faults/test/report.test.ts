import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { HistoryEvent } from '../core/model.ts'
import { type EpisodeReport, outcomesOf, type RunReport, summaryOf } from '../report/run-report.ts'
import { timeline } from '../report/timeline.ts'
import { writeReport } from '../report/write-report.ts'

const ms = 1_000_000

function event(at: number, attempt: string, type: HistoryEvent['type']): HistoryEvent {
  const [process = ''] = attempt.split('#')
  return {
    at: String(at * ms),
    process,
    workload: 'quota',
    operation: 'consume',
    key: 'a < b',
    attempt,
    type,
    ...(type === 'unknown' ? { code: 'COMMIT_UNKNOWN' } : {}),
  }
}

const history = {
  events: [
    event(0, 'app0.1#1', 'invoke'),
    event(5, 'app0.1#1', 'ok'),
    event(6, 'app0.1#2', 'invoke'),
    event(8, 'app1.1#1', 'invoke'),
    event(90, 'app1.1#1', 'unknown'),
    event(700, 'app0.2#1', 'invoke'),
    event(720, 'app0.2#1', 'ok'),
  ],
  faults: [
    { at: String(10 * ms), fault: 'kill_application', type: 'begins' as const },
    { at: String(600 * ms), fault: 'kill_application', type: 'healed' as const, note: 'app0' },
  ],
}

function episode(number: number, violations: EpisodeReport['violations'] = []): EpisodeReport {
  return {
    number,
    seed: 4_000 + number,
    faults: ['kill_application'],
    seconds: 3,
    recoveredMs: number * 10,
    outcomes: outcomesOf(history.events),
    violations,
  }
}

function runOf(episodes: readonly EpisodeReport[]): RunReport {
  return { tier: 'single', seed: 7, startedAt: 'today', episodes, notes: ['fsync is off'] }
}

describe('the timeline', () => {
  it('has a lane per process and fault, what went wrong by name, and the gap', () => {
    const svg = timeline(history, 'Episode 1')
    expect(svg).toContain('>app0<')
    expect(svg).toContain('>app1<')
    expect(svg).toContain('kill_application; app0')
    expect(svg).toContain('quota consume a &lt; b: unknown, COMMIT_UNKNOWN')
    // A killed one has no end.
    expect(svg.match(/<title>quota consume a &lt; b: unknown/g)).toHaveLength(2)
    expect(svg).toContain('another process in its place')
    expect(svg).toContain('>715 ms<')
  })

  it('can be made of nothing', () => {
    expect(timeline({ events: [], faults: [] }, 'nothing')).toContain('</svg>')
  })
})

describe('the report', () => {
  it('counts ends, and what has none as unknown', () => {
    expect(outcomesOf(history.events)).toEqual({
      quota: { ok: 2, refused: 0, failed: 0, unknown: 2 },
    })
  })

  it('says what a number of episodes without a violation is worth', () => {
    const episodes = Array.from({ length: 300 }, (_, at) => episode(at + 1))
    const { rarerThan, recoveredMs } = summaryOf(runOf(episodes))
    expect(rarerThan).toBeCloseTo(3 / 300, 3)
    expect(recoveredMs).toEqual({ median: 1_500, p99: 2_970, most: 3_000 })
    const violation = { rule: 'leak', workload: 'all', what: 'a lock' }
    expect(summaryOf(runOf([...episodes, episode(301, [violation])])).rarerThan).toBeUndefined()
  })

  it('is written with the seed and the command that show a violation again', () => {
    const folder = mkdtempSync(join(tmpdir(), 'report-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const violation = { rule: 'bound_crossed', workload: 'quota', what: 'a < b' }
    const run = runOf([episode(1), episode(2, [violation])])
    writeReport(folder, run, [{ title: 'Episode 2', history }])
    expect(readdirSync(folder)).toEqual([
      'report.html',
      'report.json',
      'report.md',
      'timeline-1.svg',
    ])
    const text = readFileSync(join(folder, 'report.md'), 'utf8')
    expect(text).toContain('npm run faults -- --tier single --episode-seed 4002')
    expect(text).toContain('**bound_crossed** in quota')
    const html = readFileSync(join(folder, 'report.html'), 'utf8')
    expect(html).toContain('a &lt; b')
    expect(html).toContain('<svg')
    expect(html).not.toMatch(/<script|<link|src=/)
  })
})
