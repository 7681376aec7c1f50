import { describe, expect, test } from 'vitest'
import type { Failure, Report } from '../../../src/core/model.ts'
import { formatReport } from '../../../src/report/terminal/format-report.ts'
import { wantsColour } from '../../../src/report/terminal/paint.ts'
import { wrap } from '../../../src/report/terminal/text.ts'
import * as made from '../../support/reports.ts'

const plain = (report: Report, columns = 100): string =>
  formatReport(report, { columns, colour: false })

describe('a race', () => {
  test('is shown as a timeline with a column per flow', () => {
    expect(plain(made.quota)).toMatchInlineSnapshot(`
      "✗ race in upload within the quota

        race         check-then-insert: each checked before the other had inserted
        rule         101 uploads, the quota is 100
        search       4 runs; happened again in 5 of 5 replays; PostgreSQL 15.19, read committed

            alice                                          bob
         1  ┌ BEGIN
         2  │ SELECT count(*)::int AS used FROM uploads
            │ WHERE user_id = 1  → 99
         3  │                                              ┌ BEGIN
         4  │                                              │ SELECT count(*)::int AS used FROM uploads
            │                                              │ WHERE user_id = 1  → 99
         5  │                                              │ INSERT INTO uploads (user_id, name) VALUES
            │                                              │ (1, 'bob.png')  → 1 row
         6  │                                              └ COMMIT  now visible: uploads
            │                                                ← (2) is no longer true
         7  │ INSERT INTO uploads (user_id, name) VALUES
            │ (1, 'alice.png')  → 1 row
            │ ← relies on (2), overtaken by (6)
         8  └ COMMIT

        why          alice's SELECT (2) read uploads where user_id = 1 (→ 99). bob's COMMIT (6) added to
                     it before alice wrote (7), so alice decided on something that was no longer true.
        cycle        alice before bob: alice's SELECT (2) did not see what bob's COMMIT (6) made of
                     uploads
        but          bob before alice: bob's SELECT (4) did not see what alice's COMMIT (8) made of
                     uploads

        fix          Lock the parent row before (2).
                     SELECT 1 FROM users WHERE id = 1 FOR UPDATE
        or           Run alice and bob at SERIALIZABLE, and run again what fails with 40001.

        final        + found here, - left by the serial order alice, bob
                     uploads: 101 rows here, 100 in the 2 serial orders
                       user_id  name
                     + 1        bob.png

        replay       HOLDFAST_RACE_REPLAY=r1.7f3c.a2b4a2
                     in the environment of the same test, or replay: 'r1.7f3c.a2b4a2'
      "
    `)
  })

  test('says in one line what is wrong', () => {
    expect(plain(made.lostUpdate)).toMatch(
      /found +stock A-1: qty is 4; after every serial order it is 3\n/,
    )
    expect(plain(made.oneStatement)).toMatch(
      /found +migration_lock has 2 rows; after every serial order it has 1\n/,
    )
    expect(plain(made.quota)).toMatch(/rule +101 uploads, the quota is 100\n/)
  })

  test('leaves out columns that were not compared', () => {
    const tables = (id: string, qty: string) => [
      { name: 'public.stock', columns: ['id', 'sku', 'qty'], rows: [[id, 'A-1', qty]] },
    ]
    const report = made.raceReport({
      name: 'take',
      play: made.quotaPlay,
      run: { tables: tables('7', '4') },
      serial: [{ tables: tables('1', '3') }],
    })
    const ignoring = {
      ...report,
      failure: { ...(report.failure as Failure), ignored: ['public.stock.id'] },
    }
    expect(plain(ignoring)).toMatch(/sku +qty\n +\+ A-1 +4\n +- A-1 +3\n/)
    expect(plain(report)).toMatch(/id +sku +qty\n/)
  })

  test('shows who waits for whom, and when it goes on', () => {
    expect(plain(made.lostUpdate)).toMatch(/waits for alice {2}← relies on \(4\)/)
    expect(plain(made.lostUpdate)).toMatch(/goes on after alice's COMMIT \(7\) → 1 row/)
    expect(plain(made.deadlock)).toMatch(/7 .*PostgreSQL ends it: deadlock/)
    expect(plain(made.deadlock)).toMatch(/goes on: bob is out of the way \(7\)/)
  })

  test('shows where a flow died, and the two halves of a statement', () => {
    expect(plain(made.crash)).toMatch(/dies here: the statement never reaches/)
    expect(plain(made.lostAnswer)).toMatch(/the server did it; the answer is lost/)
    expect(plain(made.oneStatement)).toMatch(/3 {2}└ COMMIT of \(1\)/)
  })

  const all = Object.entries(made).filter(
    (entry): entry is [string, Report] => typeof entry[1] === 'object' && 'verdict' in entry[1],
  )
  test.each(all)('%s fits every width', (_, report) => {
    for (const columns of [40, 60, 80, 100, 140]) {
      const [timeline = ''] = plain(report, columns).split(/^ {2}why/m)
      const lines = timeline.split('\n')
      expect(lines.length).toBeGreaterThan(5)
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(columns)
      expect(lines.filter((line) => line.endsWith(' '))).toEqual([])
    }
  })

  test('flows share a column where there is no room for several', () => {
    expect(plain(made.quota, 50)).toMatch(/^ {3}4 {2}bob {4}SELECT count/m)
  })

  test('nothing in the data can rewrite the screen', () => {
    const evil = '\u001b[2J\u202Egnp.exe\u0007\r\n'
    const report = made.raceReport({
      name: `quota${evil}`,
      play: {
        flows: [`alice${evil}`, 'bob'],
        lines: [{ who: 'bob', sql: evil, rows: [['a'], [evil]] }],
      },
      failure: { message: evil, token: 'r1.x' },
      run: { notes: [{ kind: 'nondeterminism', message: evil }] },
    })
    // oxlint-disable-next-line no-control-regex -- that is what must not be there
    expect(plain(report)).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
  })
})

describe('a green result', () => {
  test('says what it covered and what it did not', () => {
    expect(plain(made.greenReport())).toMatchInlineSnapshot(`
      "✓ no race in reserve seat (alice, bob)
        covered      exhaustive: 4 classes stand for all 252 interleavings (6 runs, 62 ms)
        met          the flows overlapped, 2 waits for a lock, 0 deadlocks
        not covered  other flows, more than 2 at a time, other data than the seed's; what happens inside
                     functions, triggers and foreign key checks; crashes
        server       PostgreSQL 15.19, read committed
      "
    `)
  })

  test('that is bounded says its bounds and the next step', () => {
    const coverage = {
      ...made.coverage,
      interleavings: 17_153_136n,
      preemptionBound: 2,
      missBound: { depth: 3, atMost: 0.034 },
    }
    const text = plain(made.greenReport({ verdict: 'bounded', coverage }))
    expect(text).toMatch(/^~ no race found in reserve seat within the budget/)
    expect(text).toMatch(/not exhaustive: 2 classes run, of 17,153,136 interleavings/)
    expect(text.replaceAll(/\s+/g, ' ')).toContain('complete for at most 2 preemptions')
    expect(text.replaceAll(/\s+/g, ' ')).toContain('with a probability of at most 3.4 %')
    expect(text).toMatch(/next +raise budget/)
  })

  test('without overlap is no result', () => {
    const coverage = { ...made.coverage, exhaustive: true, overlapped: false }
    const text = plain(made.greenReport({ verdict: 'vacuous', coverage }))
    expect(text).toMatch(/^! VACUOUS: the flows of reserve seat never overlapped/)
    expect(text).not.toContain('✓')
    expect(plain(made.greenReport())).not.toContain('VACUOUS')
  })
})

test('no verdict: the trouble and the next step', () => {
  const text = plain(
    made.greenReport({
      verdict: 'inconclusive',
      trouble: { kind: 'pool-too-small', flow: 1, message: 'Give the pool 2 connections.' },
    }),
  )
  expect(text).toMatch(/^\? reserve seat: no verdict/)
  expect(text).toMatch(/trouble +pool too small \(bob\)/)
  expect(text).toContain('Give the pool 2 connections.')
})

describe('colours', () => {
  test('are there when asked for, and change nothing else', () => {
    const coloured = formatReport(made.quota, { columns: 100, colour: true })
    expect(coloured).toContain('\u001b[31m')
    // oxlint-disable-next-line no-control-regex -- colours are control sequences
    expect(coloured.replaceAll(/\u001b\[\d+m/g, '').replaceAll(/ +$/gm, '')).toBe(plain(made.quota))
  })

  test.each([
    [true, {}, true],
    [false, {}, false],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [false, { FORCE_COLOR: '1' }, true],
    [true, { FORCE_COLOR: '0' }, false],
    [false, { NO_COLOR: '1', FORCE_COLOR: '1' }, true],
    [true, { TERM: 'dumb' }, false],
  ])('terminal %s with %j: %s', (isTTY, environment, wanted) => {
    expect(wantsColour({ isTTY }, environment)).toBe(wanted)
  })
})

test('a word longer than the line is broken', () => {
  expect(wrap('a bcdefghij k', 4)).toEqual(['a', 'bcde', 'fghi', 'j k'])
})
