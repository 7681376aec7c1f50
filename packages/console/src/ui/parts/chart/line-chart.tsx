/**
 * Lines over time. The place that is read out is that of a slider, so that a keyboard and a screen reader
 * read the same values as a pointer does; and the same numbers are there as a table.
 */
import type { JSX } from 'preact'
import { useId, useRef, useState } from 'preact/hooks'
import { clock, moment } from '../../format.ts'
import { linear, niceTicks, timeTicks } from './scale.ts'
import { useWidth } from './use-width.ts'

export interface Series {
  readonly name: string
  /** One per instant; `undefined` is a gap. */
  readonly values: readonly (number | undefined)[]
}

export interface LineChartProps {
  readonly title: string
  /** ISO, ascending. */
  readonly times: readonly string[]
  /** At most four: each has its own dashes and colour. */
  readonly series: readonly Series[]
  readonly format: (value: number) => string
  /** What is counted has no halves. @defaultValue 1 */
  readonly finest?: number
  /** The axis begins near the least value instead of at zero. */
  readonly zoomed?: boolean
  /** Values stay until the next one, as balances do. */
  readonly stepped?: boolean
  /** The word above the times of the table. */
  readonly timeName?: string
}

const height = 168
const inset = { top: 10, right: 12, bottom: 24, left: 56 } as const

export function LineChart(props: LineChartProps): JSX.Element {
  const { times, series, format, title } = props
  const box = useRef<HTMLDivElement>(null)
  const width = useWidth(box)
  const id = useId()
  const [at, setAt] = useState<number>()
  const last = times.length - 1
  const shown = Math.min(at ?? last, last)

  const instants = times.map((time) => Date.parse(time))
  const from = instants[0] ?? 0
  const to = instants[last] ?? 1
  const values = series.flatMap((one) => one.values.filter((value) => value !== undefined))
  const least = props.zoomed ? Math.min(...values) : Math.min(0, ...values)
  const ticks = niceTicks(least, Math.max(least, ...values), props.finest ?? 1)
  const x = linear([from, Math.max(to, from + 1)], [inset.left, width - inset.right])
  const y = linear([ticks[0] ?? 0, ticks.at(-1) ?? 1], [height - inset.bottom, inset.top])
  const readOut = series.map((one) => `${one.name} ${text(one.values[shown], format)}`).join(', ')

  const point = (event: PointerEvent): void => {
    const left = (event.currentTarget as Element).getBoundingClientRect().left
    setAt(nearest(instants, x, event.clientX - left))
  }
  return (
    <figure class="chart">
      <figcaption id={id}>
        <span class="chart-title">{title}</span>
        <span class="legend" aria-hidden="true">
          <span class="legend-time">{times[shown] && clock(times[shown])}</span>
          {series.map((one, place) => (
            <span key={one.name}>
              <svg class="swatch" viewBox="0 0 22 8">
                <path class={`line line-${place}`} d="M1 4H21" />
              </svg>
              {one.name} <b>{text(one.values[shown], format)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div
        class="chart-box"
        ref={box}
        onPointerMove={point}
        onPointerLeave={() => setAt(undefined)}
      >
        <svg width={width} height={height} aria-hidden="true">
          {ticks.map((tick) => (
            <g key={tick}>
              <line
                class="grid"
                x1={inset.left}
                x2={width - inset.right}
                y1={y(tick)}
                y2={y(tick)}
              />
              <text class="tick" x={inset.left - 8} y={y(tick) + 4} text-anchor="end">
                {format(tick)}
              </text>
            </g>
          ))}
          {timeTicks(from, to, Math.max(2, Math.floor(width / 110))).map((tick) => (
            <text
              key={tick}
              class="tick"
              x={Math.min(Math.max(x(tick), inset.left), width - inset.right)}
              y={height - 6}
              text-anchor={
                x(tick) > width - 40 ? 'end' : x(tick) < inset.left + 20 ? 'start' : 'middle'
              }
            >
              {clock(new Date(tick).toISOString(), to - from < 120_000)}
            </text>
          ))}
          {series.map((one, place) => (
            <path
              key={one.name}
              class={`line line-${place}`}
              d={pathOf(one.values, instants, x, y, props.stepped ?? false)}
            />
          ))}
          {at !== undefined && (
            <line
              class="cursor"
              x1={x(instants[shown] ?? 0)}
              x2={x(instants[shown] ?? 0)}
              y1={inset.top}
              y2={height - inset.bottom}
            />
          )}
          {series.map((one, place) => {
            const value = one.values[shown]
            if (value === undefined) return null
            return (
              <circle
                key={one.name}
                class={`dot line-${place}`}
                cx={x(instants[shown] ?? 0)}
                cy={y(value)}
                r="3.5"
              />
            )
          })}
        </svg>
        {times.length > 1 && (
          <input
            type="range"
            class="chart-slider"
            min="0"
            max={last}
            value={shown}
            aria-labelledby={id}
            aria-valuetext={`${clock(times[shown] ?? '')}: ${readOut}`}
            onInput={(event) => setAt(event.currentTarget.valueAsNumber)}
            onBlur={() => setAt(undefined)}
          />
        )}
      </div>
      <ChartTable {...props} />
    </figure>
  )
}

function ChartTable({ title, times, series, format, timeName }: LineChartProps): JSX.Element {
  const [open, setOpen] = useState(false)
  return (
    <details class="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        As a table<span class="unseen">: {title}</span>
      </summary>
      {open && (
        // A region that scrolls must be reachable by keyboard.
        <div class="scroll scroll-tall" role="region" aria-label={title} tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">{timeName ?? 'Time'}</th>
                {series.map((one) => (
                  <th key={one.name} scope="col" class="number">
                    {one.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times
                .map((time, at) => (
                  <tr key={`${time}/${at}`}>
                    <td class="nowrap">{moment(time)}</td>
                    {series.map((one) => (
                      <td key={one.name} class="number">
                        {text(one.values[at], format)}
                      </td>
                    ))}
                  </tr>
                ))
                .toReversed()}
            </tbody>
          </table>
        </div>
      )}
    </details>
  )
}

function text(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? '–' : format(value)
}

function nearest(
  instants: readonly number[],
  x: (value: number) => number,
  pointer: number,
): number {
  let best = 0
  for (const [at, instant] of instants.entries()) {
    if (Math.abs(x(instant) - pointer) < Math.abs(x(instants[best] ?? 0) - pointer)) best = at
  }
  return best
}

/** A path with gaps; a value alone between two gaps becomes a point. */
function pathOf(
  values: readonly (number | undefined)[],
  instants: readonly number[],
  x: (value: number) => number,
  y: (value: number) => number,
  stepped = false,
): string {
  let path = ''
  let drawing = false
  for (const [at, value] of values.entries()) {
    if (value === undefined) {
      drawing = false
      continue
    }
    const [left, top] = [x(instants[at] ?? 0).toFixed(1), y(value).toFixed(1)]
    if (!drawing) path += `M${left} ${top}h.01`
    else path += stepped ? `H${left}V${top}` : `L${left} ${top}`
    drawing = true
  }
  return path
}
