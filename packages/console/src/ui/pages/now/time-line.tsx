import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { HistoryPoint } from '../../../core/wire.ts'
import { clock, plural, relative } from '../../format.ts'
import { linear } from '../../parts/chart/scale.ts'
import { useWidth } from '../../parts/chart/use-width.ts'
import { Icon } from '../../parts/icon.tsx'
import { changed, go, usePlace } from '../../router.ts'
import { useNow } from '../../ticker.ts'

const height = 36

/** How many waited, over the time that is kept; any moment of it can be looked at again. */
export function TimeLine(props: {
  readonly points: readonly HistoryPoint[]
  readonly at: string | undefined
}): JSX.Element {
  const { points, at } = props
  const box = useRef<HTMLDivElement>(null)
  const width = useWidth(box)
  const place = usePlace()
  const now = useNow()
  const last = points.length - 1
  const asked = at === undefined ? last : points.findIndex((point) => point.at >= at)
  const [dragged, setDragged] = useState<number>()
  const chosen = dragged ?? (asked === -1 ? last : asked)

  // While a thumb is dragged over hundreds of instants, only where it rests is asked for.
  useEffect(() => {
    if (dragged === undefined) return undefined
    const timer = window.setTimeout(() => {
      setDragged(undefined)
      const point = dragged >= last ? undefined : points[dragged]
      go(changed(place, { at: point?.at }), { replace: at !== undefined })
    }, 120)
    return () => clearTimeout(timer)
  }, [dragged])

  const point = points[chosen]
  const x = linear([0, Math.max(1, last)], [1, width - 1])
  const most = Math.max(1, ...points.map(({ waiting }) => waiting))
  const y = linear([0, most], [height - 1, 3])
  const line = points
    .map(
      ({ waiting }, index) =>
        `${index === 0 ? 'M' : 'H'}${x(index).toFixed(1)} ${index === 0 ? y(waiting).toFixed(1) : ''}V${y(waiting).toFixed(1)}`,
    )
    .join('')
  const words = point
    ? `${clock(point.at)}, ${plural(point.waiting, 'session waits', 'sessions wait')}`
    : ''
  return (
    <section class={`time-line ${at === undefined ? '' : 'time-line-past'}`} aria-label="History">
      <div class="time-line-head">
        <Icon name="history" />
        {at === undefined ? (
          <span>{summary(points)}</span>
        ) : (
          <>
            <span>
              As it was at <b>{clock(at)}</b>, {relative(at, now)}
            </span>
            <button
              type="button"
              class="button button-small"
              onClick={() => go(changed(place, { at: undefined }))}
            >
              Back to now
            </button>
          </>
        )}
      </div>
      <div class="time-line-box" ref={box}>
        <svg width={width} height={height} aria-hidden="true">
          {line && <path class="time-area" d={`${line}V${height}H0z`} />}
          <path class="time-edge" d={line} />
          {points.length > 1 && (
            <line class="time-cursor" x1={x(chosen)} x2={x(chosen)} y1="0" y2={height} />
          )}
        </svg>
        {points.length > 1 && (
          <input
            type="range"
            class="chart-slider"
            min="0"
            max={last}
            value={chosen}
            aria-label="Moment that is shown"
            aria-valuetext={chosen === last && at === undefined ? `now, ${words}` : words}
            onInput={(event) => setDragged(event.currentTarget.valueAsNumber)}
          />
        )}
      </div>
    </section>
  )
}

function summary(points: readonly HistoryPoint[]): string {
  if (points.length < 2) return 'History is kept from now on'
  const ms = Date.parse(points.at(-1)?.at ?? '') - Date.parse(points[0]?.at ?? '')
  const span = ms < 90_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`
  const most = Math.max(...points.map(({ waiting }) => waiting))
  return most === 0
    ? `Nobody waited in the last ${span}`
    : `Last ${span}: up to ${most} waited at once`
}
