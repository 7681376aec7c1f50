import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Report } from '../../../src/core/model.ts'
import { htmlReport } from '../../../src/report/page/html-report.ts'
import { mermaidReport } from '../../../src/report/mermaid.ts'
import * as made from '../../support/reports.ts'

const all = Object.entries(made).filter(
  (entry): entry is [string, Report] => typeof entry[1] === 'object' && 'verdict' in entry[1],
)
const evil = `</script><script>alert(1)</script><img src=x onerror=alert(2)>"'&\u202e\u0000; end\n%%{init: {}}%% #35;`

/** A report in which every text that comes from outside is hostile. */
const hostile = made.raceReport({
  name: evil,
  play: {
    flows: [evil, 'bob'],
    lines: [
      {
        who: evil,
        sql: `SELECT '${evil}' FROM "${evil}" WHERE a = $1`,
        parameters: [evil],
        touches: { read: `public.${evil}` },
        rows: [
          [evil, 'b'],
          [evil, null],
        ],
      },
      {
        who: 'bob',
        sql: `INSERT INTO t VALUES ('${evil}')`,
        touches: { insert: `public.${evil}` },
      },
      {
        who: evil,
        sql: 'UPDATE t SET a = 1',
        touches: { lock: `public.${evil}` },
        error: { sqlstate: evil, message: evil },
      },
    ],
  },
  failure: { message: evil, token: evil },
  run: {
    tables: [{ name: evil, columns: [evil], rows: [[evil]] }],
    outcomes: [{ kind: 'threw', name: evil, message: evil, sqlstate: evil }],
    notes: [{ kind: 'nondeterminism', message: evil }],
  },
  serial: [{ tables: [], outcomes: [{ kind: 'returned', value: evil }] }],
})

describe('the page', () => {
  test.each(all)('of %s holds the steps, the reason and the fix', (_, report) => {
    const page = htmlReport(report)
    const steps = report.failure?.run.steps ?? []
    for (const { index } of steps) expect(page).toContain(`<li id="step-${index + 1}">`)
    expect(page.match(/<svg class="picture/g)).toHaveLength(2)
    expect(page).toContain('<h2>Why</h2>')
  })

  test('shows the stale read, the arrow to the commit, and the wait', () => {
    expect(htmlReport(made.quota)).toMatch(/class="band"/)
    expect(htmlReport(made.quota).match(/<path class="arrow"/g)).toHaveLength(2)
    expect(htmlReport(made.quota)).not.toMatch(/<g class="wait"/)
    expect(htmlReport(made.lostUpdate)).toMatch(/<g class="wait"[\s\S]*url\(#large-hatch\)/)
    // Of a deadlock one arrow each, in the large picture and in the small one.
    expect(htmlReport(made.deadlock).match(/<path class="arrow"/g)).toHaveLength(4)
  })

  test('lets nothing of the data become markup', () => {
    const page = htmlReport(hostile)
    const [, script] = /<script>([\s\S]*?)<\/script>/.exec(page) ?? []
    expect(page.split('<script>')).toHaveLength(2)
    expect(script).not.toContain('alert')
    expect(page).not.toMatch(/<img|onerror=alert\(2\)>"/)
    // oxlint-disable-next-line no-control-regex -- that is what must not be there
    expect(page).not.toMatch(/[\u0000\u202e]/)
    expect(page).toContain('&lt;/script&gt;')
  })

  test('loads nothing, and may run nothing but its own script', () => {
    for (const report of [made.quota, made.greenReport(), hostile]) {
      const page = htmlReport(report)
      expect(page).not.toMatch(/\b(?:src|href)=["'](?!#)/)
      expect(page).not.toMatch(/@import|url\((?!#)/)
      const [, policy = ''] = /Content-Security-Policy" content="([^"]*)"/.exec(page) ?? []
      expect(policy).toContain("default-src 'none'")
      for (const tag of ['style', 'script']) {
        const [, text] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(page) ?? []
        if (text === undefined) continue
        expect(policy).toContain(createHash('sha256').update(text).digest('base64'))
      }
    }
  })

  test.each([
    ['race-free', made.greenReport(), /badge free">no race</],
    ['bounded', made.greenReport({ verdict: 'bounded' }), /No race found within the budget/],
    [
      'vacuous',
      made.greenReport({
        verdict: 'vacuous',
        coverage: { ...made.coverage, overlapped: false },
      }),
      /The flows never overlapped/,
    ],
    [
      'inconclusive',
      made.greenReport({
        verdict: 'inconclusive',
        trouble: { kind: 'hung-flow', message: 'bob waits.' },
      }),
      /bob waits\./,
    ],
  ])('of a search without a race: %s', (_, report, text) => {
    const page = htmlReport(report)
    expect(page).toMatch(text)
    expect(page).not.toContain('<script>')
  })
})

describe('the Mermaid diagram', () => {
  test('has every step in its order', () => {
    expect(mermaidReport(made.lostUpdate)).toMatchInlineSnapshot(`
      "sequenceDiagram
        participant f0 as alice
        participant db as PostgreSQL
        participant f1 as bob
        f0->>db: 1 BEGIN
        f0->>db: 2 SELECT sku, qty FROM stock WHERE sku = 'A-1' LIMIT 1
        db-->>f0: → qty=5
        f1->>db: 3 BEGIN
        f1->>db: 4 SELECT sku, qty FROM stock WHERE sku = 'A-1' LIMIT 1
        db-->>f1: → qty=5
        f0->>db: 5 UPDATE stock SET qty = 4 WHERE sku = 'A-1'
        f1->>db: 6 UPDATE stock SET qty = 4 WHERE sku = 'A-1'
        Note over f1: waits for alice, relies on (4)
        f0->>db: 7 COMMIT
        Note over f0: now visible: stock, (4) is no longer true
        db-->>f1: (6) goes on after alice's COMMIT (7) → 1 row
        f1->>db: 8 COMMIT
        Note over f0,f1: ✗ stock A-1: qty is 4#59; after every serial order it is 3
      "
    `)
  })

  test('lets nothing of the data become syntax', () => {
    const lines = mermaidReport(hostile).split('\n')
    const known =
      /^(?:sequenceDiagram|  participant \w+ as .*|  \w+(?:->>|-->>|-x)\w+: .*|  Note over \w+(?:,\w+)?: .*|)$/
    expect(lines.filter((line) => !known.test(line))).toEqual([])
    expect(lines.join('').replaceAll(/#\d+;|-->>|->>/g, '')).not.toMatch(/[;<>"%{}]/)
  })

  test('says so when there was no race', () => {
    expect(mermaidReport(made.greenReport())).toContain('race-free: exhaustive: 4 classes')
  })
})
