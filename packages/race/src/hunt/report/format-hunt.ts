import { aBoolean, aNumber, assertOptions, type KnownOptions } from '../../core/known-options.ts'
import type { FormatOptions } from '../../report/terminal/format-report.ts'
import { type Paint, painter, type Style, wantsColour } from '../../report/terminal/paint.ts'
import { harmless, wrap } from '../../report/terminal/text.ts'
import { list, placeText, times } from '../../report/words.ts'
import { type HuntedPair, type HuntReport, type PairVerdict, timeOver } from '../model.ts'

const formatOptions = { columns: aNumber, colour: aBoolean } satisfies KnownOptions<FormatOptions>

/** Width of what stands before a text. */
const indent = 12
const widest = 120

/** What a hunt has found, for a terminal: each proof with how to see it again, then what is not decided. */
export function formatHunt(report: HuntReport, options: FormatOptions = {}): string {
  assertOptions(options, formatOptions)
  const columns = Math.max(40, Math.min(options.columns ?? process.stdout.columns ?? 100, widest))
  const paint = painter(options.colour ?? wantsColour(process.stdout, process.env))
  const of = (verdict: PairVerdict): readonly HuntedPair[] =>
    report.pairs.filter((pair) => pair.verdict === verdict)
  const skipped = skippedOf(report)
  const unusable = report.calls.filter(({ unusable: because }) => because !== undefined)
  const lines = (label: string, text: string): string[] => labelled(label, text, columns, paint)
  return [
    ...of('proven').flatMap((pair) => proofLines(pair, columns, paint)),
    ...group('undecided', of('undecided'), 'yellow', lines, paint),
    ...group('not looked at', skipped.told, 'yellow', lines, paint),
    ...leftOutLines(skipped.leftOut, columns),
    ...(unusable.length === 0
      ? []
      : [
          paint(`~ in no pair: ${times(unusable.length, 'call')}`, 'yellow'),
          ...unusable.flatMap(({ number, name, unusable: because = '' }) =>
            lines(`(${number})`, `${name}: ${because}`),
          ),
          '',
        ]),
    ...report.notes.flatMap((note) => lines('note', note)),
    ...wrap(countsText(report), columns),
    '',
  ].join('\n')
}

/** Pairs that nobody wanted to be looked at need no name: how many there are, by what leaves them out. */
export function skippedOf({ pairs }: HuntReport): {
  readonly told: readonly HuntedPair[]
  readonly leftOut: readonly string[]
} {
  const skipped = pairs.filter(({ verdict }) => verdict === 'not looked at')
  const wanted = Map.groupBy(skipped, ({ because }) => because)
  return {
    told: wanted.get(timeOver) ?? [],
    leftOut: [...wanted].flatMap(([because = '', { length }]) =>
      because === timeOver ? [] : [`${times(length, 'pair')} ${because}`],
    ),
  }
}

function leftOutLines(leftOut: readonly string[], columns: number): string[] {
  if (leftOut.length === 0) return []
  return [...leftOut.flatMap((text) => wrap(harmless(text), columns)), '']
}

/** How much there was, and what became of it. */
export function countsText({ calls, pairs, apart, server, milliseconds }: HuntReport): string {
  const counted = (['proven', 'refuted', 'undecided', 'not looked at'] as const).map(
    (verdict) => `${pairs.filter((pair) => pair.verdict === verdict).length} ${verdict}`,
  )
  return (
    `${times(calls.length, 'call')}, ${times(pairs.length, 'pair')} that can meet and ${apart} that cannot: ` +
    `${list(counted)}; ${server}, ${(milliseconds / 1000).toFixed(1)} s`
  )
}

function proofLines(pair: HuntedPair, columns: number, paint: Paint): string[] {
  const { name, sentence = '', from, token = '', places = [], patch } = pair
  const lines = (label: string, text: string): string[] => labelled(label, text, columns, paint)
  return [
    paint(`✗ ${harmless(name)}`, 'bold', 'red'),
    ...lines('race', sentence.slice(name.length + 2)),
    ...lines('from', from.join('; ')),
    ...(places.length === 0 ? [] : lines('lines', places.map(placeText).join(', '))),
    ...lines('replay', token),
    ...(patch === undefined
      ? []
      : [...lines('patch', patch.text), ...diffLines(patch.diff, paint)]),
    '',
  ]
}

/** As they are: a line that is broken is no diff. */
function diffLines(diff: string, paint: Paint): string[] {
  const style = (line: string): Style =>
    line.startsWith('+') ? 'green' : line.startsWith('-') ? 'red' : 'dim'
  return diff
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [blanks = ''] = /^[-+ ][\t ]*|/.exec(line) ?? []
      return ' '.repeat(indent) + paint(blanks + harmless(line.slice(blanks.length)), style(line))
    })
}

function group(
  what: string,
  pairs: readonly HuntedPair[],
  style: Style,
  lines: (label: string, text: string) => string[],
  paint: Paint,
): string[] {
  if (pairs.length === 0) return []
  return [
    paint(`~ ${what}: ${times(pairs.length, 'pair')}`, style),
    ...pairs.flatMap(({ name, because = '' }) => lines('', `${name}: ${because}`)),
    '',
  ]
}

function labelled(label: string, text: string, columns: number, paint: Paint): string[] {
  return wrap(harmless(text), columns - indent).map((line, at) => {
    const head = `  ${at === 0 ? label : ''}`.padEnd(indent)
    return paint(head, 'dim') + line
  })
}
