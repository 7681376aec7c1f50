import type { Explanation } from '../explain.ts'
import type { Moment } from '../anomaly/history.ts'
import { sawOf } from '../saw.ts'
import { cut } from '../sql/shorten.ts'
import { wrap } from '../terminal/text.ts'
import { isWaiting, resumeText, stepText, type TimelineRow, timelineOf } from '../timeline.ts'

/** Where things are in a picture, in its own units. */
export interface Layout {
  readonly width: number
  readonly height: number
  readonly lanes: readonly Lane[]
  readonly rows: readonly PlacedRow[]
  readonly compact: boolean
}

export interface Lane {
  readonly flow: number
  readonly name: string
  /** Left edge, and where its rail is. */
  readonly x: number
  readonly rail: number
  readonly width: number
}

export interface PlacedRow {
  readonly row: TimelineRow
  readonly lane: Lane
  readonly y: number
  readonly height: number
  readonly lines: readonly TextLine[]
}

export interface TextLine {
  readonly text: string
  readonly kind: 'statement' | 'saw' | 'note' | 'mark' | 'resume' | 'error'
}

export const lineHeight = 17
const characterWidth = 7.3
export const headHeight = 44
const cardPadding = 8
const rowGap = 9
const gutter = 34

/** A column per flow; compact ones name the statement only by its verb. */
export function layoutOf(explanation: Explanation, compact: boolean): Layout {
  const { history, marks } = explanation
  const { flows } = history
  const laneWidth = compact ? Math.max(150, 330 / flows.length) : Math.max(320, 1000 / flows.length)
  const lanes = flows.map((name, flow): Lane => {
    const x = gutter + flow * laneWidth
    return { flow, name: cut(name, Math.floor(laneWidth / 9)), x, rail: x + 14, width: laneWidth }
  })
  const characters = Math.floor((laneWidth - 28 - 2 * cardPadding - 14) / characterWidth)
  let y = headHeight + 14
  const rows = timelineOf(history, marks).map((row): PlacedRow => {
    const lane = lanes[row.moment.step.flow] as Lane
    const lines = compact ? compactLines(row, characters) : fullLines(row, characters)
    const height = lines.length * lineHeight + (compact ? 8 : 2 * cardPadding - 3)
    const placed = { row, lane, y, height, lines }
    y += height + (compact ? 5 : rowGap)
    return placed
  })
  return { width: gutter + flows.length * laneWidth + 4, height: y + 10, lanes, rows, compact }
}

function fullLines(row: TimelineRow, characters: number): TextLine[] {
  const { moment, note, mark } = row
  const told = (kind: TextLine['kind'], text: string): TextLine[] =>
    wrap(text.replaceAll(/\s+/g, ' '), characters)
      .slice(0, 3)
      .map((line) => ({ kind, text: line }))
  const saw = isWaiting(moment) === (row.kind === 'resume') ? sawOf(moment.step) : undefined
  const seen = saw === undefined ? [] : told(isError(moment) ? 'error' : 'saw', `→ ${saw}`)
  if (row.kind === 'resume') return [...told('resume', resumeText(row)), ...seen]
  const text = stepText(moment, characters * 2 - 2)
  const statement = told('statement', text === '' ? '(nothing was sent)' : text)
  return [
    ...joined(statement, seen, characters),
    ...(note === undefined ? [] : told('note', note)),
    ...(mark === undefined || mark.note === '' ? [] : told('mark', mark.note)),
  ]
}

/** What was seen stands behind the statement if there is room. */
function joined(statement: TextLine[], seen: TextLine[], characters: number): TextLine[] {
  const last = statement.at(-1)
  const [only] = seen
  if (last === undefined || only === undefined || seen.length > 1) return [...statement, ...seen]
  if (last.text.length + only.text.length + 2 > characters) return [...statement, ...seen]
  return [...statement.slice(0, -1), { kind: only.kind, text: `${last.text}\u0000${only.text}` }]
}

function compactLines(row: TimelineRow, characters: number): TextLine[] {
  const { moment } = row
  const saw = sawOf(moment.step, characters - 8)
  if (row.kind === 'resume') return [{ kind: 'resume', text: cut('goes on', characters) }]
  const verb = moment.step.half === 'commit' ? 'COMMIT' : moment.statement.verb || '·'
  const tells = moment.kind === 'read' || moment.kind === 'lock'
  const first = saw === undefined || !tells || isWaiting(moment) ? verb : `${verb}\u0000→ ${saw}`
  const lines: TextLine[] = [{ kind: tells ? 'saw' : 'statement', text: cut(first, characters) }]
  if (isError(moment))
    lines.push({ kind: 'error', text: cut(`${moment.step.answer.error?.sqlstate}`, characters) })
  if (isWaiting(moment)) lines.push({ kind: 'note', text: cut('waits', characters) })
  if (moment.kind === 'crash') lines.push({ kind: 'mark', text: 'dies here' })
  if (moment.kind === 'lost-answer') lines.push({ kind: 'mark', text: 'answer lost' })
  return lines
}

function isError({ step }: Moment): boolean {
  return step.answer.error !== undefined
}

/** Vertical centre of the first line of a row. */
export function centreOf({ y }: PlacedRow, compact: boolean): number {
  return y + (compact ? 13 : cardPadding + 9)
}

export { cardPadding }
