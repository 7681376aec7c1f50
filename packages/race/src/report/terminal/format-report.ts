import { aBoolean, aNumber, assertOptions, type KnownOptions } from '../../core/known-options.ts'
import type { Failure, Report } from '../../core/model.ts'
import { assertReport } from '../assert-report.ts'
import {
  boundedBy,
  coveredText,
  isVacuous,
  metText,
  notCoveredText,
  vacuousWhy,
} from '../coverage-words.ts'
import { type Difference, differenceOf, faultOf, type TableDifference } from '../difference.ts'
import { type Explanation, explainFailure } from '../explain.ts'
import { cut } from '../sql/shorten.ts'
import { timelineOf } from '../timeline.ts'
import { times } from '../words.ts'
import { columnsOf } from './columns.ts'
import { type Paint, painter, type Style, wantsColour } from './paint.ts'
import { harmless, wrap } from './text.ts'

/** How a report is to be written. What is not given is what the process's own terminal can do. */
export interface FormatOptions {
  /** Characters of a line; at least 40. */
  readonly columns?: number
  readonly colour?: boolean
}

const formatOptions = { columns: aNumber, colour: aBoolean } satisfies KnownOptions<FormatOptions>

/** Beyond this a line is hard to follow. */
const widest = 140
const labelWidth = 11

/** The report as text for a terminal: the timeline of a race, or what a green result covers. */
export function formatReport(report: Report, options: FormatOptions = {}): string {
  assertReport(report, 'formatReport()')
  assertOptions(options, formatOptions)
  const colour = options.colour ?? wantsColour(process.stdout, process.env)
  const columns = Math.max(40, Math.min(widest, options.columns ?? process.stdout.columns ?? 100))
  const paint = painter(colour)
  const { failure } = report
  const lines =
    failure !== undefined
      ? raceLines(report, failure, columns, paint)
      : report.verdict === 'inconclusive'
        ? inconclusiveLines(report, columns, paint)
        : greenLines(report, columns, paint)
  return `${[...lines, ...noteLines(report, columns, paint)].join('\n')}\n`
}

function raceLines(report: Report, failure: Failure, columns: number, paint: Paint): string[] {
  const explanation = explainFailure(report, failure)
  const difference = differenceOf(failure, report)
  const { history, marks, title, why, cycle } = explanation
  const [again, tries] = failure.reproduced
  const section = sectionOf(columns, paint)
  const timeline = columnsOf(timelineOf(history, marks), history, columns, paint)
  const repeated = tries === 0 ? '' : `; happened again in ${again} of ${times(tries, 'replay')}`
  return [
    headline('✗', 'red', raceTitle(report, failure), columns, paint),
    '',
    ...section('race', title, ['bold']),
    ...section(failure.kind === 'invariant' ? 'rule' : 'found', faultOf(failure, difference), [
      'red',
    ]),
    ...section(
      'search',
      `${times(report.coverage.schedules, 'run')}${repeated}; ${report.server}`,
      ['dim'],
    ),
    '',
    ...timeline,
    '',
    ...section('why', why),
    ...cycle.flatMap((line, at) => section(at === 0 ? 'cycle' : 'but', line)),
    '',
    ...fixLines(explanation, columns, paint),
    '',
    ...differenceLines(difference, columns, paint),
    ...section('replay', `HOLDFAST_RACE_REPLAY=${failure.token}`),
    ...section('', `in the environment of the same test, or replay: '${failure.token}'`, ['dim']),
  ]
}

function fixLines({ fixes }: Explanation, columns: number, paint: Paint): string[] {
  const section = sectionOf(columns, paint)
  if (fixes.length === 0) return section('fix', 'none known for this pattern')
  return fixes.flatMap(({ joint, text, code }, at) => [
    ...section(at === 0 ? 'fix' : joint, text),
    // Code is not wrapped at words, so that it can be copied.
    ...(code === undefined
      ? []
      : [`  ${' '.repeat(labelWidth)}  ${paint(harmless(code), 'cyan')}`]),
  ])
}

const shownRows = 4

function differenceLines(difference: Difference, columns: number, paint: Paint): string[] {
  const { tables, outcomes, together, nearest, orders } = difference
  // Where rows differ, how each flow ended is a matter of course.
  const ends = together === undefined || tables.length > 0 ? outcomes : [together]
  if (tables.length === 0 && ends.length === 0) return []
  const section = sectionOf(columns, paint)
  const serially = orders === 1 ? 'the serial order' : `the ${orders} serial orders`
  return [
    ...section('final', `+ found here, - left by the serial order ${nearest.join(', ')}`, ['dim']),
    ...tables.flatMap((table) => [
      ...section(
        '',
        `${table.name}: ${times(table.found, 'row')} here, ${table.serial.join(' or ')} in ${serially}`,
      ),
      ...tableLines(table, columns - labelWidth - 4).map(
        ([sign, line]) =>
          `  ${' '.repeat(labelWidth)}  ${paint(`${sign} ${line}`, signStyles[sign])}`,
      ),
    ]),
    ...ends.flatMap((text) => section('', text)),
    '',
  ]
}

type Sign = '+' | '-' | ' '
const signStyles: Readonly<Record<Sign, Style>> = { '+': 'red', '-': 'green', ' ': 'dim' }

/** The rows that differ, in columns, below their names. */
function tableLines(table: TableDifference, width: number): (readonly [Sign, string])[] {
  const { changed, extra, missing } = table
  const all: (readonly [Sign, readonly (string | null)[]])[] = [
    ...changed.flatMap(({ found, serial }) => [['+', found] as const, ['-', serial] as const]),
    ...extra.map((row) => ['+', row] as const),
    ...missing.map((row) => ['-', row] as const),
  ]
  const shown = all.slice(0, shownRows * 2)
  const lines = [[' ', table.columns] as const, ...shown].map(
    ([sign, row]) => [sign, row.map((cell) => cut(harmless(cell ?? 'NULL'), 30))] as const,
  )
  const widths = table.columns.map((_, at) =>
    Math.max(...lines.map(([, row]) => (row[at] ?? '').length)),
  )
  const hidden = all.length - shown.length
  return [
    ...lines.map(([sign, row]): readonly [Sign, string] => [
      sign,
      cut(
        row
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join('  ')
          .trimEnd(),
        width - 2,
      ),
    ]),
    ...(hidden === 0 ? [] : [[' ', `and ${times(hidden, 'row')} more`] as const]),
  ]
}

function raceTitle({ name }: Report, { kind }: Failure): string {
  if (kind === 'deadlock') return `deadlock in ${name}`
  return kind === 'crash' ? `a crash does damage in ${name}` : `race in ${name}`
}

function greenLines(report: Report, columns: number, paint: Paint): string[] {
  const section = sectionOf(columns, paint)
  const body = [
    ...section('covered', coveredText(report)),
    ...section('met', metText(report)),
    ...section('not covered', notCoveredText(report), ['dim']),
    ...section('server', report.server, ['dim']),
  ]
  if (isVacuous(report)) {
    return [
      headline(
        '!',
        'yellow',
        `VACUOUS: the flows of ${report.name} never overlapped`,
        columns,
        paint,
      ),
      ...section('', vacuousWhy(report), ['yellow']),
      ...body,
    ]
  }
  const bounded = report.verdict === 'bounded'
  const text = bounded
    ? `no race found in ${report.name} ${boundedBy(report).what}`
    : `no race in ${report.name}`
  return [
    headline(
      bounded ? '~' : '✓',
      bounded ? 'yellow' : 'green',
      `${text} (${report.flows.join(', ')})`,
      columns,
      paint,
    ),
    ...body,
    ...(bounded ? section('next', boundedBy(report).next, ['yellow']) : []),
  ]
}

function inconclusiveLines(report: Report, columns: number, paint: Paint): string[] {
  const section = sectionOf(columns, paint)
  const { trouble } = report
  const who = trouble?.flow === undefined ? '' : ` (${report.flows[trouble.flow] ?? ''})`
  return [
    headline('?', 'yellow', `${report.name}: no verdict`, columns, paint),
    ...section('trouble', `${(trouble?.kind ?? 'unknown').replaceAll('-', ' ')}${who}`, ['bold']),
    ...section('', trouble?.message ?? 'The search ended without saying why.', ['yellow']),
    ...section('so far', `${coveredText(report)}; ${metText(report)}`),
    ...section('server', report.server, ['dim']),
  ]
}

function noteLines({ notes, failure }: Report, columns: number, paint: Paint): string[] {
  const section = sectionOf(columns, paint)
  const all = [...notes, ...(failure?.run.notes ?? [])].map(({ message }) => message)
  return [...new Set(all)].flatMap((message) => section('note', message, ['yellow']))
}

function headline(sign: string, style: Style, text: string, columns: number, paint: Paint): string {
  const [first = '', ...rest] = wrap(harmless(text), columns - 2)
  return [
    `${paint(sign, style, 'bold')} ${paint(first, 'bold')}`,
    ...rest.map((line) => `  ${paint(line, 'bold')}`),
  ].join('\n')
}

/** A label and a paragraph beside it. */
function sectionOf(columns: number, paint: Paint) {
  return (label: string, text: string, styles: readonly Style[] = []): string[] =>
    wrap(harmless(text), columns - labelWidth - 4).map((line, at) => {
      const shown = paint((at === 0 ? label : '').padEnd(labelWidth), 'dim')
      return `  ${shown}  ${paint(line, ...styles)}`
    })
}
