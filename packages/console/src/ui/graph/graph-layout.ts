/**
 * Where everything of the graph stands. Roots are at the left and top, whoever waits is to the right of
 * whoever it waits for, and the wanted lock is between them. The order from top to bottom is that of the
 * tree beside it, so that both are read the same way.
 */
import type { ObservedLock, ObservedSession } from 'holdfast/observe'
import { type Branch, firstOf, type LockGroup } from './blocking-forest.ts'

export interface GraphNode {
  readonly session: ObservedSession
  readonly x: number
  readonly y: number
  readonly height: number
}

/** The lock that some wait for, drawn where its holder's line parts. */
export interface GraphLock {
  readonly lock: ObservedLock | undefined
  readonly x: number
  readonly y: number
  readonly width: number
}

export interface GraphEdge {
  readonly from: number
  readonly to: number
  readonly kind: 'hard' | 'soft'
  readonly path: string
}

/** Waiters that are not drawn, because they would say nothing new. */
export interface GraphRest {
  readonly hidden: number
  readonly parent: number
  readonly x: number
  readonly y: number
}

export interface Graph {
  readonly width: number
  readonly height: number
  readonly nodes: readonly GraphNode[]
  readonly locks: readonly GraphLock[]
  readonly edges: readonly GraphEdge[]
  /** Lines from a holder to a lock; they bear no word of their own. */
  readonly trunks: readonly string[]
  readonly rests: readonly GraphRest[]
}

export const size = {
  node: { width: 208, height: 46, tall: 64 },
  lock: { height: 24, mostLetters: 24, letter: 7 },
  rest: { height: 28 },
  gap: 18,
  margin: 10,
} as const

/** Of one lock, so many waiters are drawn; the others are counted. */
const mostDrawn = 8

/** Before and behind a lock there is room for lines to turn. */
const before = 26
const behind = 40

const { node, lock: pill, gap, margin } = size

/** Lays the forest out. With `all`, nobody is left out. */
export function layOut(forest: readonly Branch[], all = false): Graph {
  const graph = new Drawing(all, columns(forest))
  let top: number = margin
  for (const root of forest) top = graph.place(root, 0, top) + gap
  graph.drawOtherEdges(forest)
  return {
    width: graph.right + margin,
    height: top - gap + margin,
    nodes: graph.nodes,
    locks: graph.locks,
    edges: graph.edges,
    trunks: graph.trunks,
    rests: graph.rests,
  }
}

/** Where each column of sessions begins: as far apart as the longest name between them needs. */
function columns(forest: readonly Branch[]): readonly number[] {
  const places: number[] = [margin]
  for (let column = forest; column.length > 0; ) {
    const groups = column.flatMap((branch) => branch.groups)
    const widest = Math.max(0, ...groups.map(({ lock }) => pillWidth(lock)))
    places.push((places.at(-1) ?? 0) + node.width + before + widest + behind)
    column = groups.flatMap(({ branches }) => branches)
  }
  return places
}

function pillWidth(lock: ObservedLock | undefined): number {
  const letters = Math.min(pill.mostLetters, (lock?.name ?? 'unknown').length)
  return Math.max(52, Math.ceil(letters * pill.letter) + 22)
}

/** Who waits says so in one line; whoever does not needs another for what it does. */
function heightOf({ blockedBy }: ObservedSession): number {
  return blockedBy.length > 0 ? node.height : node.tall
}

interface Box {
  readonly x: number
  readonly y: number
  readonly height: number
}

class Drawing {
  readonly nodes: GraphNode[] = []
  readonly locks: GraphLock[] = []
  readonly edges: GraphEdge[] = []
  readonly trunks: string[] = []
  readonly rests: GraphRest[] = []
  right = 0
  readonly #all: boolean
  readonly #columns: readonly number[]
  readonly #places = new Map<number, Box>()

  constructor(all: boolean, places: readonly number[]) {
    this.#all = all
    this.#columns = places
  }

  /** Places a session and all under it; returns where they end. */
  place(branch: Branch, column: number, y: number): number {
    const box = { x: this.#columns[column] ?? 0, y, height: heightOf(branch.session) }
    this.nodes.push({ session: branch.session, ...box })
    this.#places.set(branch.session.pid, box)
    this.right = Math.max(this.right, box.x + node.width)
    let bottom = y + box.height
    let top = y
    for (const group of branch.groups) {
      const end = this.#placeGroup(group, branch.session.pid, box, column, top)
      bottom = Math.max(bottom, end)
      top = end + gap
    }
    return bottom
  }

  #placeGroup(group: LockGroup, parent: number, from: Box, column: number, top: number): number {
    const out = from.x + node.width
    // The first group leaves straight, also from a card that is taller than those behind it.
    const line = (top === from.y ? from.y : top) + node.height / 2
    const lock = { lock: group.lock, x: out + before, width: pillWidth(group.lock) }
    this.locks.push({ ...lock, y: line - pill.height / 2 })
    this.trunks.push(elbow(out, from.y + node.height / 2, lock.x, line, out + before / 2))
    const childX = this.#columns[column + 1] ?? 0
    const turn = lock.x + lock.width + 12
    const shown = this.#all ? group.branches : firstOf(group.branches, mostDrawn)
    let next = top
    for (const branch of shown) {
      const y = next + node.height / 2
      this.edges.push({
        from: parent,
        to: branch.session.pid,
        kind: branch.kind ?? 'hard',
        path: elbow(lock.x + lock.width, line, childX - 2, y, turn),
      })
      next = this.place(branch, column + 1, next) + gap
    }
    const hidden = group.branches.length - shown.length
    if (hidden > 0) {
      this.rests.push({ hidden, parent, x: childX, y: next })
      this.trunks.push(
        elbow(lock.x + lock.width, line, childX - 2, next + size.rest.height / 2, turn),
      )
      next += size.rest.height + gap
    }
    return next - gap
  }

  /**
   * Besides the line of its place, a session may have others: further holders, and those ahead in the
   * queue. Of a queue only the last one ahead is drawn, since that one has the others ahead of it.
   */
  drawOtherEdges(forest: readonly Branch[]): void {
    const waits = new Map(this.nodes.map(({ session }) => [session.pid, session.waitingMs ?? 0]))
    for (const branch of flatten(forest)) {
      const to = branch.session.pid
      const seen = branch.also.filter(({ pid }) => this.#places.has(pid))
      const ahead = seen
        .filter(({ kind }) => kind === 'soft')
        .toSorted((a, b) => (waits.get(a.pid) ?? 0) - (waits.get(b.pid) ?? 0))
      const drawn = [...seen.filter(({ kind }) => kind === 'hard'), ...ahead.slice(0, 1)]
      for (const { pid, kind } of drawn) this.#drawAcross(pid, to, kind)
    }
  }

  #drawAcross(from: number, to: number, kind: 'hard' | 'soft'): void {
    const start = this.#places.get(from)
    const end = this.#places.get(to)
    if (start === undefined || end === undefined || from === to) return
    if (start.x !== end.x) this.#drawSideways(from, to, kind, start, end)
    else if (end.y - start.y === start.height + gap) {
      // The next card: a short way down.
      const x = start.x + node.width - 30
      const path = `M${x} ${start.y + start.height}V${end.y - 2}`
      this.edges.push({ from, to, kind, path })
    } else {
      // Further down or up: out to the left, where nothing else begins.
      const [y1, y2] = [start.y + start.height - 8, end.y + 10]
      const bow = start.x - 15
      const path = `M${start.x} ${y1}C${bow} ${y1} ${bow} ${y2} ${start.x - 2} ${y2}`
      this.edges.push({
        from,
        to,
        kind,
        path,
      })
    }
  }

  #drawSideways(from: number, to: number, kind: 'hard' | 'soft', start: Box, end: Box): void {
    const forward = end.x > start.x
    const [x1, x2] = forward ? [start.x + node.width, end.x - 2] : [start.x, end.x + node.width + 2]
    const [y1, y2] = [start.y + start.height - 10, end.y + end.height - 9]
    const reach = (x2 - x1) / 2
    this.edges.push({
      from,
      to,
      kind,
      path: `M${x1} ${y1}C${x1 + reach} ${y1} ${x2 - reach} ${y2} ${x2} ${y2}`,
    })
  }
}

/** Every branch of a forest, roots first. */
function flatten(forest: readonly Branch[]): Branch[] {
  return forest.flatMap((branch) => [
    branch,
    ...flatten(branch.groups.flatMap(({ branches }) => branches)),
  ])
}

/** A line that turns twice, at `turn`, with round corners. */
function elbow(x1: number, y1: number, x2: number, y2: number, turn: number): string {
  if (Math.abs(y2 - y1) < 1) return `M${x1} ${y1}H${x2}`
  const radius = Math.min(8, Math.abs(y2 - y1) / 2)
  const down = y2 > y1 ? 1 : -1
  return (
    `M${x1} ${y1}H${turn - radius}Q${turn} ${y1} ${turn} ${y1 + radius * down}` +
    `V${y2 - radius * down}Q${turn} ${y2} ${turn + radius} ${y2}H${x2}`
  )
}
