import { type Branch, lockBranches, type LockTree, type ObservedSession } from 'holdfast/observe'
import type { Key, Size } from '../terminal/terminal.ts'

/** One line of the list: a session and where it stands in the tree. */
export interface TopRow {
  readonly branch: Branch
  /** What is drawn before its name: `│  ├─ `. */
  readonly stem: string
}

/** All that the screen shows. */
export interface TopState {
  readonly tree: LockTree | undefined
  /** Why the latest look failed; what is shown is older than that. */
  readonly trouble: string | undefined
  readonly selected: number | undefined
  /** The first line that is shown. */
  readonly offset: number
  readonly page: 'list' | 'why'
  readonly frozen: boolean
}

export const atFirst: TopState = {
  tree: undefined,
  trouble: undefined,
  selected: undefined,
  offset: 0,
  page: 'list',
  frozen: false,
}

/** What a key does beyond changing what is shown. */
export type Effect = 'quit' | 'look' | undefined

/** Lines of the screen that are not the list: head, titles, foot. */
export const margin = 4

/** Who blocks and who waits, then who only holds, as lines in the order of the tree. */
export function rowsOf(tree: LockTree | undefined): readonly TopRow[] {
  if (tree === undefined) return []
  const rows: TopRow[] = []
  const walk = (branch: Branch, indent: string, isLast: boolean | undefined): void => {
    const isRoot = isLast === undefined
    rows.push({ branch, stem: isRoot ? '' : `${indent}${isLast ? '└─ ' : '├─ '}` })
    const inner = isRoot ? '' : `${indent}${isLast ? '   ' : '│  '}`
    branch.below.forEach((child, at) => walk(child, inner, at === branch.below.length - 1))
  }
  for (const branch of lockBranches(tree)) walk(branch, '', undefined)
  const shown = new Set(rows.map(({ branch }) => branch.session.pid))
  for (const session of tree.sessions) {
    if (!shown.has(session.pid)) rows.push({ branch: { session, also: [], below: [] }, stem: '' })
  }
  return rows
}

/** Something new was seen. Who was selected stays so, wherever they are by now. */
export function seen(state: TopState, tree: LockTree, size: Size): TopState {
  if (state.frozen) return { ...state, trouble: undefined }
  const rows = rowsOf(tree)
  const isThere = rows.some(({ branch }) => branch.session.pid === state.selected)
  const selected =
    isThere || state.page === 'why'
      ? state.selected
      : (rows[indexOf(state)]?.branch.session.pid ?? rows.at(-1)?.branch.session.pid)
  return inView({ ...state, tree, trouble: undefined, selected }, size)
}

export function selectedSession({ tree, selected }: TopState): ObservedSession | undefined {
  return tree?.sessions.find(({ pid }) => pid === selected)
}

/** What a key does. */
export function pressed(
  state: TopState,
  { name, ctrl }: Key,
  size: Size,
): readonly [TopState, Effect] {
  if (ctrl) return [state, name === 'c' || name === 'd' ? 'quit' : undefined]
  if (state.page === 'why') return onWhy(state, name)
  const step = Math.max(1, size.rows - margin - 1)
  const moves: Readonly<Record<string, number>> = {
    up: -1,
    k: -1,
    down: 1,
    j: 1,
    pageup: -step,
    pagedown: step,
    home: -Infinity,
    g: -Infinity,
    end: Infinity,
  }
  const move = moves[name]
  if (move !== undefined) return [inView(moved(state, move), size), undefined]
  switch (name) {
    case 'q':
      return [state, 'quit']
    case 'return':
    case 'enter':
      return [
        selectedSession(state) === undefined ? state : { ...state, page: 'why', offset: 0 },
        undefined,
      ]
    case 'space':
      return [{ ...state, frozen: !state.frozen }, state.frozen ? 'look' : undefined]
    case 'r':
      return [{ ...state, frozen: false }, 'look']
    default:
      return [state, undefined]
  }
}

function onWhy(state: TopState, name: string): readonly [TopState, Effect] {
  switch (name) {
    case 'q':
    case 'escape':
    case 'return':
    case 'enter':
    case 'left':
    case 'backspace':
      return [{ ...state, page: 'list', offset: 0 }, undefined]
    case 'down':
    case 'j':
      return [{ ...state, offset: state.offset + 1 }, undefined]
    case 'up':
    case 'k':
      return [{ ...state, offset: Math.max(0, state.offset - 1) }, undefined]
    default:
      return [state, undefined]
  }
}

function indexOf({ tree, selected }: TopState): number {
  return Math.max(
    0,
    rowsOf(tree).findIndex(({ branch }) => branch.session.pid === selected),
  )
}

function moved(state: TopState, by: number): TopState {
  const rows = rowsOf(state.tree)
  const at = Math.max(0, Math.min(rows.length - 1, indexOf(state) + by))
  return { ...state, selected: rows[at]?.branch.session.pid }
}

/** Scrolls as far as it takes to see who is selected. */
function inView(state: TopState, { rows }: Size): TopState {
  if (state.page === 'why') return state
  const room = Math.max(1, rows - margin)
  const at = indexOf(state)
  const offset = Math.min(Math.max(state.offset, at - room + 1), at)
  return { ...state, offset }
}
