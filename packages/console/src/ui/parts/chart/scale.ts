/** Round values from at most `least` to at least `most`: about `wanted` of them, none closer than `finest`. */
export function niceTicks(
  least: number,
  most: number,
  finest: number,
  wanted = 4,
): readonly number[] {
  const rough = Math.max(finest, (most - least) / wanted)
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power
  const first = Math.floor(least / step)
  const last = Math.max(first + 1, Math.ceil(most / step - 1e-9))
  return Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step)
}

const steps = [0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map(
  (minutes) => minutes * 60_000,
)

/** Round times of the reader's clock between two instants: at most `most` of them. */
export function timeTicks(from: number, to: number, most: number): readonly number[] {
  const step = steps.find((one) => (to - from) / one <= most) ?? (to - from) / most
  const offset = new Date(from).getTimezoneOffset() * 60_000
  const first = Math.ceil((from - offset) / step) * step + offset
  const ticks: number[] = []
  for (let at = first; at <= to; at += step) ticks.push(at)
  return ticks
}

export function linear(
  domain: readonly [number, number],
  range: readonly [number, number],
): (value: number) => number {
  const span = domain[1] - domain[0] || 1
  return (value) => range[0] + ((value - domain[0]) / span) * (range[1] - range[0])
}
