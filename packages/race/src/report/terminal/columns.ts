import { basename } from 'node:path'
import type { History } from '../anomaly/history.ts'
import { sawOf } from '../saw.ts'
import { cut } from '../sql/shorten.ts'
import { isWaiting, laneOf, resumeText, stepText, type TimelineRow } from '../timeline.ts'
import { flowStyle, type Paint, type Style } from './paint.ts'
import { harmless, wrap } from './text.ts'

/** A piece of a line, and how it is to look. */
interface Piece {
  readonly text: string
  readonly styles: readonly Style[]
}

/** A column narrower than this reads badly; then the flows share one column. */
const narrowest = 28
const numberWidth = 4
const gap = 2

/** The timeline with a column per flow, as lines of at most `width` characters. */
export function columnsOf(
  rows: readonly TimelineRow[],
  history: History,
  width: number,
  paint: Paint,
): string[] {
  const { flows } = history
  const column = Math.floor((width - numberWidth - 2) / flows.length) - gap
  return column < narrowest
    ? stacked(rows, history, width, paint)
    : sideBySide(rows, history, column, paint)
}

function sideBySide(
  rows: readonly TimelineRow[],
  history: History,
  column: number,
  paint: Paint,
): string[] {
  const { flows } = history
  const head = flows.map((name, flow) =>
    padded(
      [{ text: cut(harmless(name), column), styles: ['bold', flowStyle(flow)] }],
      column,
      paint,
    ),
  )
  const lines = [`${' '.repeat(numberWidth + 2)}${head.join(' '.repeat(gap))}`.trimEnd()]
  for (const [at, row] of rows.entries()) {
    const cell = cellOf(row, history, column - 2)
    for (const [line, pieces] of cell.entries()) {
      const number = line === 0 && row.kind === 'step' ? String(row.moment.number) : ''
      const cells = flows.map((_, flow) => {
        const own = flow === row.moment.step.flow
        const rail = railOf(rows, at, flow, line)
        const railed: Piece = {
          text: `${rail} `,
          styles: rail === '┊' ? ['yellow'] : [flowStyle(flow)],
        }
        return padded(own ? [railed, ...pieces] : [railed], column, paint)
      })
      lines.push(
        `${paint(number.padStart(numberWidth), 'dim')}  ${cells.join(' '.repeat(gap))}`.trimEnd(),
      )
    }
  }
  return lines
}

function stacked(
  rows: readonly TimelineRow[],
  history: History,
  width: number,
  paint: Paint,
): string[] {
  const names = history.flows.map((name) => cut(harmless(name), 12))
  const label = Math.max(...names.map(({ length }) => length))
  return rows.flatMap((row) => {
    const { flow } = row.moment.step
    const cell = cellOf(row, history, width - numberWidth - label - 5)
    return cell.map((pieces, line) => {
      const number = line === 0 && row.kind === 'step' ? String(row.moment.number) : ''
      const name = line === 0 ? (names[flow] as string) : ''
      const shown = pieces.map(({ text, styles }) => paint(text, ...styles)).join('')
      return `${paint(number.padStart(numberWidth), 'dim')}  ${paint(name.padEnd(label), flowStyle(flow))}  ${shown}`.trimEnd()
    })
  })
}

function padded(pieces: readonly Piece[], width: number, paint: Paint): string {
  const used = pieces.reduce((sum, { text }) => sum + text.length, 0)
  const shown = pieces.map(({ text, styles }) => paint(text, ...styles)).join('')
  return `${shown}${' '.repeat(Math.max(0, width - used))}`
}

/** The open transaction of a flow beside a line: `│`, its ends `┌ └`, a wait `┊`. */
function railOf(rows: readonly TimelineRow[], at: number, flow: number, line: number): string {
  const row = rows[at] as TimelineRow
  const own = row.moment.step.flow === flow
  const index = row.kind === 'resume' ? (row.after?.step.index ?? 0) + 0.5 : row.moment.step.index
  const waiting = rows.some(
    ({ kind, moment: { step } }) =>
      kind === 'step' &&
      step.flow === flow &&
      step.waitedFor.length > 0 &&
      index >= step.index &&
      index < (step.resumedAfter ?? Number.POSITIVE_INFINITY) + 0.4,
  )
  const open = rows.find(
    ({ moment: { step, transaction } }) =>
      step.flow === flow &&
      transaction !== undefined &&
      transaction.first <= index &&
      index <= (transaction.last ?? Number.POSITIVE_INFINITY),
  )?.moment.transaction
  if (open === undefined) return ' '
  if (own && row.kind === 'step' && open.first === open.last) return line === 0 ? '╶' : ' '
  if (own && row.kind === 'step' && index === open.last) return line === 0 ? '└' : ' '
  if (waiting && !(own && row.kind === 'step' && line === 0)) return '┊'
  if (own && row.kind === 'step' && index === open.first && line === 0) return '┌'
  return '│'
}

/** What stands in the flow's column: statement, what it saw, and the small print. */
function cellOf(row: TimelineRow, history: History, width: number): Piece[][] {
  if (row.kind === 'resume') {
    const saw = sawOf(row.moment.step)
    const tail = saw === undefined ? '' : ` → ${saw}`
    return styledLines(`${resumeText(row)}${tail}`, width, ['yellow'])
  }
  const { moment, mark, note } = row
  const { step, kind } = moment
  const lane = laneOf(moment, history)
  const prefix = lane === undefined ? '' : `[connection ${lane}] `
  // What carries the cause is never shortened away.
  const room = mark === undefined ? 2 : 12
  const text = `${prefix}${stepText(moment, width * room - prefix.length - 2)}`
  const saw = isWaiting(moment) ? undefined : sawOf(step)
  const styles = stepStyles(row)
  const pieces = styledLines(text, width, styles)
  if (saw !== undefined) append(pieces, `→ ${saw}`, width, sawStyles(row))
  if (note !== undefined) append(pieces, note, width, noteStyles(kind))
  if (mark !== undefined && mark.note !== '') append(pieces, `← ${mark.note}`, width, ['red'])
  const ends = kind === 'begin' || kind === 'commit' || kind === 'rollback'
  if (step.from !== undefined && !ends) {
    append(pieces, `${basename(step.from.file)}:${step.from.line}`, width, ['dim'])
  }
  return pieces
}

function stepStyles({ moment: { kind }, mark }: TimelineRow): Style[] {
  if (mark?.role === 'stale-write' || mark?.role === 'hit') return ['red', 'bold']
  if (kind === 'begin' || kind === 'local') return ['dim']
  if (kind === 'commit') return ['bold']
  return kind === 'crash' || kind === 'lost-answer' || kind === 'victim' ? ['red'] : []
}

function sawStyles({ moment: { step }, mark }: TimelineRow): Style[] {
  if (step.answer.error !== undefined) return ['red']
  return mark?.role === 'stale-read' ? ['red', 'bold'] : ['green']
}

function noteStyles(kind: TimelineRow['moment']['kind']): Style[] {
  if (kind === 'crash' || kind === 'lost-answer') return ['red', 'bold']
  return ['yellow']
}

function styledLines(text: string, width: number, styles: readonly Style[]): Piece[][] {
  return wrap(harmless(text), width).map((line) => [{ text: line, styles }])
}

/** On the last line if there is room, else on lines of its own. */
function append(lines: Piece[][], text: string, width: number, styles: readonly Style[]): void {
  const safe = harmless(text)
  const last = lines.at(-1)
  const used = last?.reduce((sum, piece) => sum + piece.text.length, 0) ?? width
  if (last !== undefined && used + 2 + safe.length <= width) {
    last.push({ text: '  ', styles: [] }, { text: safe, styles })
  } else {
    lines.push(...styledLines(safe, width, styles))
  }
}
