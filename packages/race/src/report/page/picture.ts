import type { Explanation } from '../explain.ts'
import type { Moment } from '../anomaly/history.ts'
import { flatten } from '../sql/shorten.ts'
import { holderOf } from '../anomaly/why.ts'
import {
  cardPadding,
  centreOf,
  headHeight,
  type Lane,
  type Layout,
  layoutOf,
  lineHeight,
  type PlacedRow,
  type TextLine,
} from './layout.ts'
import { html, type Markup } from './markup.ts'

/**
 * The interleaving as SVG: a lane per flow, transactions as bars, what went wrong in red. Where a page has several, each
 * has names of its own.
 */
export function pictureOf(explanation: Explanation, compact: boolean, of = ''): Markup {
  const layout = layoutOf(explanation, compact)
  const { width, height, lanes, rows } = layout
  const size = compact ? 'small' : 'large'
  const id = `${of}${size}`
  return html`<svg class="picture ${size}" viewBox="0 0 ${width} ${Math.round(height)}" role="group" aria-labelledby="${id}-title ${id}-about">
<title id="${id}-title">Interleaving of ${lanes.map(({ name }) => name).join(' and ')}</title>
<desc id="${id}-about">${explanation.why}</desc>
<defs>
<pattern id="${id}-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern>
<marker id="${id}-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path class="arrowhead" d="M0 0 10 5 0 10z"/></marker>
</defs>
${lanes.map((lane) => laneOf(lane, height))}
${barsOf(explanation, layout)}
${bandOf(explanation, layout)}
${waitsOf(layout, id)}
${arrowsOf(explanation, layout, id)}
${rows.map((row) => stepOf(row, compact, of))}
</svg>`
}

function laneOf({ flow, name, x, rail, width }: Lane, height: number): Markup {
  return html`<g class="lane flow-${flow % 5}"><rect class="head" x="${x}" y="4" width="${width - 10}" height="${headHeight - 14}" rx="6"/><text class="name" x="${x + 14}" y="24">${name}</text><line class="rail" x1="${rail}" x2="${rail}" y1="${headHeight - 4}" y2="${Math.round(height - 6)}"/></g>`
}

function stepRow({ rows }: Layout, index: number): PlacedRow | undefined {
  return rows.find(({ row }) => row.kind === 'step' && row.moment.step.index === index)
}

function resumeRow({ rows }: Layout, index: number): PlacedRow | undefined {
  return rows.find(({ row }) => row.kind === 'resume' && row.moment.step.index === index)
}

/** Each transaction as a bar on its rail. */
function barsOf({ history }: Explanation, layout: Layout): Markup[] {
  return history.transactions.flatMap(({ first, last, flow, end }) => {
    const from = stepRow(layout, first)
    const to = stepRow(layout, last ?? layout.rows.length - 1) ?? layout.rows.at(-1)
    if (from === undefined || to === undefined) return []
    const top = centreOf(from, layout.compact) - 6
    const bottom = Math.max(centreOf(to, layout.compact), top + 6) + 6
    return [
      html`<rect class="bar flow-${flow % 5} ${end ?? 'open'}" x="${from.lane.rail - 5}" y="${top}" width="10" height="${bottom - top}" rx="5"/>`,
    ]
  })
}

/** Waits, hatched over the bar. */
function waitsOf(layout: Layout, id: string): Markup[] {
  return layout.rows.flatMap((placed) => {
    const { row, lane } = placed
    if (row.kind !== 'step' || row.moment.step.waitedFor.length === 0) return []
    const until = resumeRow(layout, row.moment.step.index)
    const top = centreOf(placed, layout.compact)
    const bottom = until === undefined ? layout.height - 12 : centreOf(until, layout.compact)
    return [
      html`<g class="wait" data-after="${row.moment.number}"><rect class="ground" x="${lane.rail - 5}" y="${top}" width="10" height="${bottom - top}"/><rect x="${lane.rail - 5}" y="${top}" width="10" height="${bottom - top}" fill="url(#${id}-hatch)"/></g>`,
    ]
  })
}

/** From the stale read to what was done on its strength: what the flow believed all the while. */
function bandOf({ found }: Explanation, layout: Layout): Markup | undefined {
  const { read, write } = found
  if (read === undefined || write === undefined || read === write) return undefined
  const from = stepRow(layout, read.step.index)
  const to = stepRow(layout, write.step.index)
  if (from === undefined || to === undefined) return undefined
  const { lane } = from
  const top = from.y
  const bottom = to.y + to.height
  const room = to.y - (from.y + from.height)
  const free = !layout.rows.some(
    (placed) => placed.lane === lane && placed.y > from.y && placed.y < to.y,
  )
  const label =
    free && room > 34 && !layout.compact
      ? html`<text class="belief" x="${lane.x + 40}" y="${Math.round(from.y + from.height + room / 2 + 4)}">${read.who} still goes by what (${read.number}) saw</text>`
      : undefined
  return html`<g class="band" data-after="${read.number}"><rect x="${lane.x + 24}" y="${top - 3}" width="${lane.width - 34}" height="${bottom - top + 6}" rx="8"/>${label}</g>`
}

/** From the stale read to the commit that overtook it; of a deadlock, from each wait to the lock. */
function arrowsOf(explanation: Explanation, layout: Layout, id: string): Markup[] {
  const { found, history } = explanation
  const { read, commit, circle = [] } = found
  const pairs: (readonly [Moment, Moment])[] = circle.flatMap((waiting) => {
    const holder = holderOf(history, waiting)
    return holder === undefined ? [] : [[waiting, holder] as const]
  })
  if (read !== undefined && commit !== undefined) pairs.push([read, commit])
  return pairs.flatMap(([from, to]) => {
    const start = stepRow(layout, from.step.index)
    const end = stepRow(layout, to.step.index)
    if (start === undefined || end === undefined || start.lane === end.lane) return []
    const after = Math.max(from.number, to.number)
    return [
      html`<path class="arrow" data-after="${after}" d="${curve(start, end, layout.compact)}" marker-end="url(#${id}-arrow)"/>`,
    ]
  })
}

/** From the edge of one card that faces the other's lane to the edge there that faces back. */
function curve(start: PlacedRow, end: PlacedRow, compact: boolean): string {
  const rightwards = start.lane.x < end.lane.x
  const startX = rightwards ? start.lane.x + start.lane.width - 13 : start.lane.x + 26
  const endX = rightwards ? end.lane.rail - 8 : end.lane.x + end.lane.width - 11
  const startY = centreOf(start, compact)
  const endY = centreOf(end, compact)
  const bend = rightwards ? 26 : -34
  return `M${startX} ${startY}C${startX + bend} ${startY} ${endX - bend} ${endY} ${endX} ${endY}`
}

function stepOf(placed: PlacedRow, compact: boolean, of: string): Markup {
  const { row, lane, y, height, lines } = placed
  const { moment, mark, kind } = row
  const centre = centreOf(placed, compact)
  const x = lane.x + 28
  const classes = ['step', `flow-${lane.flow % 5}`, moment.kind, kind, mark?.role ?? ''].join(' ')
  const number =
    kind === 'step'
      ? html`<text class="number" x="24" y="${centre + 4}">${moment.number}</text>`
      : undefined
  const card =
    compact && mark === undefined
      ? undefined
      : html`<rect class="card" x="${x}" y="${y}" width="${lane.width - 42}" height="${height}" rx="6"/>`
  return html`<a class="${classes}" href="#${of}step-${moment.number}" data-step="${moment.number}" data-after="${row.after?.number ?? moment.number}"><title>${tooltip(moment)}</title>${number}${card}${nodeOf(moment, kind, lane.rail, centre)}${lines.map((line, at) => textLine(line, x + cardPadding, y + (compact ? 17 : cardPadding + 13) + at * lineHeight))}</a>`
}

function tooltip({ who, number, step }: Moment): string {
  const sql = step.statements.map((one) => flatten(one, step.parameters)).join(';\n')
  return `(${number}) ${who}\n${step.half === 'commit' ? 'commits: ' : ''}${sql}`
}

/** Shapes differ by what a step does, so that colour is not needed to tell them apart. */
function nodeOf({ kind }: Moment, row: 'step' | 'resume', x: number, y: number): Markup {
  if (row === 'resume') return html`<path class="node" d="M${x - 4} ${y - 5}l8 5-8 5z"/>`
  if (kind === 'write')
    return html`<rect class="node" x="${x - 5}" y="${y - 5}" width="10" height="10" rx="1.5"/>`
  if (kind === 'lock') return html`<path class="node" d="M${x} ${y - 7}l7 7-7 7-7-7z"/>`
  if (kind === 'commit')
    return html`<circle class="node" cx="${x}" cy="${y}" r="7"/><path class="tick" d="M${x - 3} ${y}l2.2 2.4 4-4.8"/>`
  if (kind === 'crash' || kind === 'lost-answer' || kind === 'victim' || kind === 'rollback') {
    return html`<circle class="node" cx="${x}" cy="${y}" r="7"/><path class="tick" d="M${x - 2.8} ${y - 2.8}l5.6 5.6m0-5.6l-5.6 5.6"/>`
  }
  return html`<circle class="node" cx="${x}" cy="${y}" r="${kind === 'read' ? 5.5 : 3.5}"/>`
}

/** A statement and what it saw may share a line, parted by a zero. */
function textLine({ text, kind }: TextLine, x: number, y: number): Markup {
  const [first = '', second] = text.split('\u0000')
  if (second === undefined) return html`<text class="${kind}" x="${x}" y="${y}">${first}</text>`
  return html`<text class="statement" x="${x}" y="${y}">${first}<tspan class="${kind}" dx="9">${second}</tspan></text>`
}
