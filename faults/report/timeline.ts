import type { FaultEvent, Outcome } from '../core/model.ts'
import type { History } from '../history/read-history.ts'
import { grouped, type Operation, operationsOf } from '../history/operations-of.ts'

/** Told apart by those who do not see red and green alike, on white and on black. */
export const colours: Readonly<Record<Outcome, string>> = {
  ok: '#3b8b5a',
  refused: '#6aa7d6',
  failed: '#d1603d',
  unknown: '#8f5ea2',
}

const width = 1200
const edge = { left: 120, right: 24, top: 58 }
const rowHeight = 9
const faultHeight = 18
const laneGap = 16
/** So long without anything that ended well is drawn as a gap. */
const gapMs = 150
const nsPerMs = 1_000_000

interface Scale {
  readonly x: (ms: number) => number
  readonly untilMs: number
}

/**
 * One episode as a picture that needs nothing but itself: a lane per fault and per process, in it a row per
 * workload, each operation from its beginning to its end in the colour of its outcome. Where nobody in any
 * process was told that something went well, the background is grey.
 */
export function timeline(history: History, title: string): string {
  const operations = operationsOf(history.events)
  const origin = BigInt(history.events[0]?.at ?? history.faults[0]?.at ?? 0)
  const msOf = (at: string): number => Number(BigInt(at) - origin) / nsPerMs
  const faults = faultsOf(history.faults, msOf)
  const untilMs = Math.max(
    1,
    ...operations.map(({ began, told }) => (told ?? began) / nsPerMs),
    ...faults.map(({ toMs, fromMs }) => toMs ?? fromMs),
  )
  const scale: Scale = {
    untilMs,
    x: (ms) => edge.left + (Math.min(ms, untilMs) / untilMs) * (width - edge.left - edge.right),
  }
  const workloads = [...new Set(operations.map(({ workload }) => workload))]
  const lanes = [...grouped(operations, ({ process }) => process.split('.')[0])].toSorted((a, b) =>
    a[0].localeCompare(b[0]),
  )
  const faultsEnd = edge.top + faults.length * faultHeight + laneGap
  const laneHeight = workloads.length * rowHeight + laneGap
  const bottom = faultsEnd + lanes.length * laneHeight
  const parts = [
    text(edge.left, 20, title, 'font-size="15" font-weight="600"'),
    legend(),
    ...gapsOf(operations, untilMs).map((gap) => drawGap(gap, scale, bottom)),
    ...ticksOf(untilMs).map((ms) => drawTick(ms, scale, bottom)),
    ...faults.map((fault, at) => drawFault(fault, edge.top + at * faultHeight, scale)),
    ...lanes.flatMap(([name, some], at) =>
      drawLane(name, some, workloads, faultsEnd + at * laneHeight, scale),
    ),
  ]
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${bottom + 24}" ` +
    `font-family="system-ui, sans-serif" font-size="11" fill="#777" role="img" aria-label="${escaped(title)}">\n` +
    `${parts.join('\n')}\n</svg>\n`
  )
}

interface DrawnFault {
  readonly name: string
  readonly fromMs: number
  readonly toMs: number | undefined
  readonly notes: readonly string[]
}

function faultsOf(events: readonly FaultEvent[], msOf: (at: string) => number): DrawnFault[] {
  const drawn: { name: string; fromMs: number; toMs: number | undefined; notes: string[] }[] = []
  for (const { at, fault, type, note } of events) {
    const open = drawn.findLast(({ name, toMs }) => name === fault && toMs === undefined)
    if (type === 'begins') {
      drawn.push({
        name: fault,
        fromMs: msOf(at),
        toMs: undefined,
        notes: note === undefined ? [] : [note],
      })
    } else if (open !== undefined && type === 'healed') open.toMs = msOf(at)
    if (type !== 'begins' && note !== undefined) {
      if (open !== undefined) open.notes.push(note)
      // A moment of the episode itself: the faults are over, the crew is asked to stop.
      else drawn.push({ name: fault, fromMs: msOf(at), toMs: msOf(at), notes: [note] })
    }
  }
  return drawn
}

/** From the end of one that went well to the end of the next, if that took long. */
function gapsOf(operations: readonly Operation[], untilMs: number): [number, number][] {
  const good = operations
    .flatMap(({ outcome, told }) =>
      outcome === 'ok' && told !== undefined ? [told / nsPerMs] : [],
    )
    .toSorted((a, b) => a - b)
  return [0, ...good].flatMap((from, at): [number, number][] => {
    const to = good[at] ?? untilMs
    return to - from > gapMs ? [[from, to]] : []
  })
}

function drawGap([from, to]: [number, number], { x }: Scale, bottom: number): string {
  const span = x(to) - x(from)
  return (
    `<rect x="${fixed(x(from))}" y="${edge.top - 14}" width="${fixed(span)}" height="${bottom - edge.top + 14}" fill="#888" fill-opacity="0.16"/>` +
    text((x(from) + x(to)) / 2, edge.top - 4, `${Math.round(to - from)} ms`, 'text-anchor="middle"')
  )
}

function drawTick(ms: number, { x }: Scale, bottom: number): string {
  const line = `<path d="M${fixed(x(ms))} ${edge.top}V${bottom}" stroke="#888" stroke-opacity="0.25"/>`
  return line + text(x(ms), bottom + 14, `${ms / 1_000} s`, 'text-anchor="middle"')
}

function drawFault({ name, fromMs, toMs, notes }: DrawnFault, y: number, scale: Scale): string {
  const { x, untilMs } = scale
  const span = Math.max(3, x(toMs ?? untilMs) - x(fromMs))
  const words = [name, ...notes].join('; ')
  const label = words.length > 110 ? `${words.slice(0, 107)}…` : words
  // Beside the bar, on the side that has room.
  const late = x(fromMs) > width * 0.6
  const place = late
    ? text(x(fromMs) - 6, y + 12, label, 'text-anchor="end" fill="#b3261e"')
    : text(x(fromMs) + span + 6, y + 12, label, 'fill="#b3261e"')
  return (
    `<rect x="${fixed(x(fromMs))}" y="${y + 3}" width="${fixed(span)}" height="${faultHeight - 6}" rx="2" fill="#b3261e" fill-opacity="0.75"><title>${escaped(words)}</title></rect>` +
    place
  )
}

function drawLane(
  name: string,
  operations: readonly Operation[],
  workloads: readonly string[],
  top: number,
  scale: Scale,
): string[] {
  const lives = [...grouped(operations, ({ process }) => process)]
  const labels = workloads.map((workload, row) =>
    text(edge.left - 8, top + row * rowHeight + 8, workload, 'text-anchor="end" font-size="8.5"'),
  )
  return [
    text(10, top + 12, name, 'font-size="13" font-weight="600"'),
    ...labels,
    ...lives.slice(1).map(([, [first]]) => drawBirth(first?.began ?? 0, workloads, top, scale)),
    ...(['ok', 'refused'] as const).map((outcome) =>
      drawMany(operations, outcome, workloads, top, scale),
    ),
    ...lives.flatMap(([, some]) => {
      const endMs = Math.max(...some.map(({ began, told }) => (told ?? began) / nsPerMs))
      return some
        .filter(({ outcome }) => outcome === 'failed' || outcome === 'unknown')
        .map((operation) => drawOne(operation, endMs, workloads, top, scale))
    }),
  ]
}

/** Where a process took the place of one that was killed. */
function drawBirth(began: number, workloads: readonly string[], top: number, { x }: Scale): string {
  const height = workloads.length * rowHeight
  return `<path d="M${fixed(x(began / nsPerMs))} ${top - 3}v${height + 6}" stroke="#777" stroke-dasharray="2 2"><title>another process in its place</title></path>`
}

/** Thousands of them as one line each. */
function drawMany(
  operations: readonly Operation[],
  outcome: Outcome,
  workloads: readonly string[],
  top: number,
  { x }: Scale,
): string {
  const path = operations
    .filter((operation) => operation.outcome === outcome)
    .map(({ began, told, workload }) => {
      const from = x(began / nsPerMs)
      const length = Math.max(1, x((told ?? began) / nsPerMs) - from)
      return `M${fixed(from)} ${fixed(yOf(workload, workloads, top))}h${fixed(length)}`
    })
    .join('')
  return `<path d="${path}" stroke="${colours[outcome]}" stroke-width="${rowHeight - 3}" stroke-opacity="0.8" fill="none"/>`
}

function drawOne(
  { began, told, workload, outcome, operation, key, code }: Operation,
  endMs: number,
  workloads: readonly string[],
  top: number,
  { x }: Scale,
): string {
  const from = x(began / nsPerMs)
  const length = Math.max(1.5, x(told === undefined ? endMs : told / nsPerMs) - from)
  const y = yOf(workload, workloads, top) - (rowHeight - 2) / 2
  const words = `${workload} ${operation} ${key}: ${outcome}${code === undefined ? '' : `, ${code}`}`
  return `<rect x="${fixed(from)}" y="${fixed(y)}" width="${fixed(length)}" height="${rowHeight - 2}" fill="${colours[outcome]}"><title>${escaped(words)}</title></rect>`
}

function yOf(workload: string, workloads: readonly string[], top: number): number {
  return top + (workloads.indexOf(workload) + 0.5) * rowHeight
}

function legend(): string {
  const entries: readonly [string, string][] = [
    ...Object.entries(colours),
    ['fault', '#b3261e'],
    [`nothing ended well for ${gapMs} ms or more`, '#bbb'],
  ]
  let x = width - edge.right - 520
  return entries
    .map(([name, colour]) => {
      const entry = `<rect x="${x}" y="11" width="10" height="10" fill="${colour}"/>${text(x + 14, 20, name)}`
      x += 26 + name.length * 6
      return entry
    })
    .join('')
}

function ticksOf(untilMs: number): number[] {
  const step =
    [250, 500, 1_000, 2_000, 5_000, 10_000].find((each) => untilMs / each <= 12) ?? 60_000
  return Array.from({ length: Math.floor(untilMs / step) + 1 }, (_, at) => at * step)
}

function text(x: number, y: number, words: string, more = ''): string {
  return `<text x="${fixed(x)}" y="${fixed(y)}" ${more}>${escaped(words)}</text>`
}

function fixed(value: number): string {
  return String(Math.round(value * 10) / 10)
}

export function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
