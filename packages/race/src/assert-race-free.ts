import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { aBoolean, assertOptions, type KnownOptions } from './core/known-options.ts'
import type { Report } from './core/model.ts'
import { annotationsOf } from './report/annotations.ts'
import { assertReport } from './report/assert-report.ts'
import { jsonReport } from './report/json.ts'
import { htmlReport } from './report/page/html-report.ts'
import { type FormatOptions, formatReport } from './report/terminal/format-report.ts'

/** What may count as free of races beside an exhaustive search. */
export interface RaceFreeOptions {
  /** A search that ended with its budget and found nothing is enough. */
  readonly bounded?: boolean
}

/** Whether a report is good enough, and what to tell if it is not (or if it should not have been). */
export interface Judgement {
  readonly pass: boolean
  /** Asked for by an assertion that does not hold: only then are lines told to GitHub, and a page is left. */
  message(): string
}

const raceFreeOptions = { bounded: aBoolean } satisfies KnownOptions<RaceFreeOptions>

/** `toBeRaceFree`: no race, the flows did meet, and everything was covered. */
export function judgeRaceFree(
  report: Report,
  options: RaceFreeOptions = {},
  who = 'toBeRaceFree()',
): Judgement {
  assertReport(report, who)
  assertOptions(options, raceFreeOptions)
  const bounded = report.verdict === 'bounded'
  const pass = report.verdict === 'race-free' || (bounded && options.bounded === true)
  const hint =
    bounded && !pass
      ? '  accept it   toBeRaceFree({ bounded: true }), if a search within the budget is enough here\n'
      : ''
  const message = (): string => {
    if (pass) return tell(report)
    annotate(report)
    return `${tell(report)}${hint}${pageLine(report)}`
  }
  return { pass, message }
}

/** In GitHub Actions a race is shown beside the lines that make it. */
function annotate(report: Report): void {
  if (process.env['GITHUB_ACTIONS'] !== 'true') return
  for (const line of annotationsOf(report)) process.stdout.write(`${line}\n`)
}

/** `toHaveRace`: a race whose message, name or explanation matches. */
export function judgeHasRace(report: Report, pattern?: RegExp | string): Judgement {
  assertReport(report, 'toHaveRace()')
  const text = tell(report, { columns: 400, colour: false }).replaceAll(/\s+/g, ' ')
  const matches =
    pattern === undefined ||
    (typeof pattern === 'string' ? text.includes(pattern) : pattern.test(text))
  const pass = report.verdict === 'race' && matches
  const wanted = pattern === undefined ? 'a race' : `a race that matches ${String(pattern)}`
  return {
    pass,
    message: () =>
      `${pass ? 'Not wanted' : 'Wanted'}: ${wanted}.\n\n${tell(report)}${pageLine(report)}`,
  }
}

/**
 * Throws unless the report is free of races: for `node:test` and everything without matchers. The
 * message is the timeline.
 *
 * @example assertRaceFree(await explore({ … }))
 */
export function assertRaceFree(report: Report, options: RaceFreeOptions = {}): void {
  const { pass, message } = judgeRaceFree(report, options, 'assertRaceFree()')
  if (pass) return
  const error = new Error(`\n${message()}`)
  error.name = 'RaceError'
  // The stack of this library tells nobody anything.
  Error.captureStackTrace(error, assertRaceFree)
  throw error
}

function tell(report: Report, options?: FormatOptions): string {
  return formatReport(report, options)
}

/** With HOLDFAST_RACE_OUT set, every failure also leaves a page in that folder, and the same as JSON. */
function pageLine(report: Report): string {
  const folder = process.env['HOLDFAST_RACE_OUT']
  if (folder === undefined || folder === '') return ''
  mkdirSync(folder, { recursive: true })
  const name = report.name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  const path = resolve(
    join(folder, `${name === '' ? 'race' : name.slice(0, 80)}-${markOf(report)}`),
  )
  writeFileSync(`${path}.html`, htmlReport(report))
  writeFileSync(`${path}.json`, jsonReport(report))
  return `  page         ${path}.html\n`
}

/**
 * Tests may have the same name, and the same flows with another seed or another rule the same schedule: what was found
 * tells them apart, and the same found again has the same page.
 */
function markOf({ verdict, flows, failure, trouble, notes }: Report): string {
  const ends = [failure?.run, ...(failure?.serial.map(({ run }) => run) ?? [])]
  const found = [
    [verdict, flows, trouble, notes, failure?.kind, failure?.message, failure?.token],
    ends.map((run) => [run?.tables, run?.outcomes]),
  ]
  return createHash('sha256').update(JSON.stringify(found)).digest('hex').slice(0, 8)
}
