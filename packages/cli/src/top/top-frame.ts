import type { ObservedSession } from 'holdfast/observe'
import { headline, queryText } from '../render/lock-tree.ts'
import { chainTo, renderWhy } from '../render/why.ts'
import { age, lockName, lockNames, moment, sessionName } from '../render/words.ts'
import { cleanText } from '../terminal/clean-text.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Size } from '../terminal/terminal.ts'
import { cutText, padText } from '../terminal/text-width.ts'
import { margin, rowsOf, selectedSession, type TopRow, type TopState } from './top-state.ts'

const keys = {
  list: '↑↓ select · enter why · space freeze · r look now · q quit',
  why: '↑↓ scroll · esc back · ctrl-c quit',
} as const

/** The screen as lines, each of them fits; at most as many as there are rows. */
export function renderFrame(state: TopState, size: Size, paint: Paint): string[] {
  const { columns, rows } = size
  const body = state.page === 'why' ? whyLines(state, size, paint) : listLines(state, size, paint)
  const room = Math.max(1, rows - 2)
  const lines = body.slice(0, room)
  while (lines.length < room) lines.push('')
  return [
    head(state, columns, paint),
    ...lines,
    paint('inverse', padText(cutText(` ${keys[state.page]}`, columns), columns)),
  ].slice(0, rows)
}

function head({ tree, trouble, frozen }: TopState, columns: number, paint: Paint): string {
  if (trouble !== undefined)
    return paint(['bold', 'red'], cutText(`Cannot look: ${cleanText(trouble)}`, columns))
  if (tree === undefined) return cutText('Looking …', columns)
  const when = `${frozen ? 'frozen ' : ''}${moment(tree.at).slice(11)} · ${Math.round(tree.tookMs)} ms`
  const room = Math.max(10, columns - when.length - 2)
  const text = headline(tree, { width: room, paint: (_, words) => words })
  const painted = headline(tree, { width: room, paint })
  return `${painted}${' '.repeat(Math.max(2, columns - text.length - when.length))}${paint('dim', cutText(when, Math.max(0, columns - text.length - 2)))}`
}

function listLines(state: TopState, { columns, rows }: Size, paint: Paint): string[] {
  const all = rowsOf(state.tree)
  const room = Math.max(1, rows - margin)
  const shown = all.slice(state.offset, state.offset + room)
  const below = all.length - state.offset - shown.length
  return [
    paint('bold', cutText(rowText(titles, columns), columns)),
    ...shown.map((row) => {
      const text = rowText(cellsOf(row), columns)
      const isSelected = row.branch.session.pid === state.selected
      return isSelected
        ? paint('inverse', padText(text, columns))
        : paint(styleOf(row.branch.session), text)
    }),
    ...(below > 0 ? [paint('dim', cutText(`… ${below} more below`, columns))] : []),
  ]
}

function styleOf({ waitsFor, waiters, advice }: ObservedSession): 'red' | 'yellow' | 'reset' {
  if (waitsFor === undefined && waiters > 0) return 'red'
  return waitsFor === undefined && advice.length === 0 ? 'reset' : 'yellow'
}

interface Cells {
  readonly session: string
  readonly pid: string
  readonly waits: string
  readonly blocks: string
  readonly lock: string
  readonly state: string
  readonly transaction: string
  readonly query: string
}

const titles: Cells = {
  session: 'session',
  pid: 'pid',
  waits: 'waits',
  blocks: 'blocks',
  lock: 'lock',
  state: 'state',
  transaction: 'in tx',
  query: 'query',
}

function cellsOf({ branch: { session }, stem }: TopRow): Cells {
  const { pid, waitsFor, waitingMs, waiters, holds, state, transactionMs } = session
  return {
    session: `${stem}${sessionName(session)}`,
    pid: pid === 0 ? '' : String(pid),
    waits: waitsFor === undefined ? '' : age(waitingMs ?? 0),
    blocks: waiters === 0 ? '' : String(waiters),
    lock: waitsFor === undefined ? `holds ${lockNames(holds, 3)}` : lockName(waitsFor),
    state: cleanText(state).replace('idle in transaction', 'idle in tx'),
    transaction: transactionMs === undefined ? '' : age(transactionMs),
    query: queryText(session),
  }
}

/** The wider the screen, the more columns; name, pid, wait and lock are always there. */
function rowText(cells: Cells, columns: number): string {
  const session = Math.max(14, Math.min(34, Math.floor(columns * 0.28)))
  const lock = Math.max(12, Math.min(44, Math.floor(columns * 0.3)))
  const parts = [
    padText(cutText(cells.session, session), session),
    cells.pid.padStart(8),
    cells.waits.padStart(10),
    ...(columns >= 70 ? [cells.blocks.padStart(6)] : []),
    padText(cutText(cells.lock, lock), lock),
    ...(columns >= 110
      ? [padText(cutText(cells.state, 12), 12), cells.transaction.padStart(10)]
      : []),
    ...(columns >= 90 ? [cells.query] : []),
  ]
  return cutText(parts.join(' ').trimEnd(), columns)
}

function whyLines(state: TopState, { columns, rows }: Size, paint: Paint): string[] {
  const session = selectedSession(state)
  if (state.tree === undefined || session === undefined) {
    return ['', cutText('It no longer holds a lock or waits for one.', columns)]
  }
  const width = Math.max(20, Math.min(columns, 120))
  const lines = renderWhy(state.tree, chainTo(state.tree, session.pid), { width, paint })
  const offset = Math.max(0, Math.min(state.offset, lines.length - (rows - 3)))
  return ['', ...lines.slice(offset)]
}
