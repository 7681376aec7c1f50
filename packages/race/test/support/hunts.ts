/** Hunts written by hand, with every verdict and with texts that try to be something else. */
import type { Report } from '../../src/core/model.ts'
import type { HuntedPair, HuntReport, PairVerdict } from '../../src/hunt/model.ts'
import { doubleClaim, lostUpdate, quota } from './reports.ts'

/** A pair of a call with itself, or with another. */
export function pairOf(
  calls: string | readonly [string, string],
  verdict: PairVerdict,
  rest: Partial<HuntedPair> = {},
): HuntedPair {
  const [one, other] = typeof calls === 'string' ? [calls, calls] : calls
  return {
    name: `${one} × ${one === other ? 'itself' : other}`,
    calls: [one, other],
    numbers: [1, 1],
    verdict,
    reasons: ['reads public.a before it writes, and the other writes it'],
    from: ['the rows of the recording'],
    runs: 6,
    ...rest,
  }
}

/** The same as proven by a report, whose steps came from these lines. */
export function provenPair(calls: string | readonly [string, string], report: Report): HuntedPair {
  const places = [{ file: `${process.cwd()}/src/upload.ts`, line: 12 }]
  const pair = pairOf(calls, 'proven')
  return {
    ...pair,
    sentence: `${pair.name}: it goes wrong`,
    token: report.failure?.token ?? '',
    places,
    inputs: [
      {
        kind: 'http',
        method: 'POST',
        path: '/files',
        headers: [['content-type', 'application/json']],
        body: '{"name":"<img src=x onerror=alert(1)>"}',
      },
      { kind: 'arguments', values: [7, 'x'] },
    ],
    report: withLines(report),
  }
}

function withLines(report: Report): Report {
  const { failure } = report
  if (failure === undefined) return report
  const steps = failure.run.steps.map((step) => ({
    ...step,
    from: { file: `${process.cwd()}/src/up load.ts`, line: 10 + step.index },
  }))
  return { ...report, failure: { ...failure, run: { ...failure.run, steps } } }
}

export function huntOf(pairs: readonly HuntedPair[], rest: Partial<HuntReport> = {}): HuntReport {
  return {
    calls: [
      { number: 1, name: 'POST /files', said: 'accepted', statements: 4 },
      {
        number: 2,
        name: 'GET /ping',
        said: 'accepted',
        statements: 0,
        unusable: 'it sends no statement',
      },
    ],
    pairs,
    apart: 7,
    functions: 'open',
    notes: ['2 calls were made while another was under way, and are in no pair'],
    server: 'PostgreSQL 15.19',
    milliseconds: 4_210,
    ...rest,
  }
}

export const nothingProven: HuntReport = huntOf([pairOf('GET /files', 'refuted')])

export const allVerdicts: HuntReport = huntOf([
  provenPair('POST /files', quota),
  provenPair(['POST /files', 'PATCH /accounts/:n'], lostUpdate),
  provenPair('take <b>a `job`</b>', doubleClaim),
  pairOf('PATCH /files/:n', 'refuted'),
  pairOf(['PATCH /files/:n', 'POST /files'], 'undecided', {
    because: 'nothing was found in 81 runs, and not every order was run',
  }),
  pairOf(['DELETE /files/:n', 'POST /files'], 'not looked at', { because: 'the time was over' }),
])
