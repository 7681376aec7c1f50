/** What a hunt hands over: a text for a terminal, and JSON. */
import { expect, test } from 'vitest'
import { formatHunt } from '../../../src/hunt/report/format-hunt.ts'
import { type JsonHunt, jsonHunt } from '../../../src/hunt/report/json-hunt.ts'
import type { HuntedPair, HuntReport } from '../../../src/hunt/model.ts'
import { quota } from '../../support/reports.ts'

const pair = (name: string, rest: Partial<HuntedPair>): HuntedPair => ({
  name: `${name} × itself`,
  calls: [name, name],
  numbers: [1, 1],
  verdict: 'refuted',
  reasons: ['reads public.a before it writes, and the other writes it'],
  from: ['the rows of the recording'],
  runs: 6,
  ...rest,
})

const report: HuntReport = {
  calls: [
    { number: 1, name: 'upload', said: 'accepted', statements: 4 },
    { number: 2, name: 'ping', said: 'accepted', statements: 0, unusable: 'it sends no statement' },
  ],
  pairs: [
    pair('upload', {
      verdict: 'proven',
      sentence: 'upload × itself: check-then-insert; 101 uploads\u001b[2J, the quota is 100',
      token: quota.failure?.token ?? '',
      places: [{ file: `${process.cwd()}/src/upload.ts`, line: 12 }],
      report: quota,
    }),
    pair('rename', {}),
    pair('move', { verdict: 'undecided', because: 'nothing was found in 81 runs' }),
    pair('copy', { verdict: 'not looked at', because: 'the time was over' }),
  ],
  apart: 7,
  functions: 'open',
  notes: ['2 calls were made while another was under way, and are in no pair'],
  server: 'PostgreSQL 15.19',
  milliseconds: 4_210,
}

test('a terminal is told of each proof, then of what is not decided, and last how much there was', () => {
  expect(formatHunt(report, { columns: 80, colour: false })).toBe(
    `✗ upload × itself
  race      check-then-insert; 101 uploads·[2J, the quota is 100
  from      the rows of the recording
  lines     src/upload.ts:12
  replay    ${quota.failure?.token}

~ undecided: 1 pair
            move × itself: nothing was found in 81 runs

~ not looked at: 1 pair
            copy × itself: the time was over

~ in no pair: 1 call
  (2)       ping: it sends no statement

  note      2 calls were made while another was under way, and are in no pair
2 calls, 4 pairs that can meet and 7 that cannot: 1 proven, 1 refuted, 1
undecided and 1 not looked at; PostgreSQL 15.19, 4.2 s
`,
  )
})

test('JSON has every pair with its verdict, and of a proof its name, fixes and lines', () => {
  const json = JSON.parse(jsonHunt(report)) as JsonHunt
  expect(json).toMatchObject({ format: 1, apart: 7, milliseconds: 4_210, calls: report.calls })
  expect(json.pairs.map(({ verdict }) => verdict)).toEqual([
    'proven',
    'refuted',
    'undecided',
    'not looked at',
  ])
  expect(json.pairs[0]).toMatchObject({
    anomaly: 'check-then-insert',
    places: ['src/upload.ts:12'],
    token: quota.failure?.token,
  })
  expect(json.pairs[0]?.fixes?.length).toBeGreaterThan(0)
  expect(json.pairs[0]).not.toHaveProperty('report')
})
