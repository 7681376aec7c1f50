/** A point with its spread. `x` is drawn on a logarithmic scale. */
export interface ChartPoint {
  readonly x: number
  readonly y: number
  readonly low: number
  readonly high: number
}

export interface ChartLine {
  readonly name: string
  readonly points: readonly ChartPoint[]
}

export interface Chart {
  readonly title: string
  readonly xLabel: string
  readonly yLabel: string
  readonly lines: readonly ChartLine[]
}

const [width, height] = [720, 400]
const edge = { left: 70, right: 24, top: 80, bottom: 64 }
/** Told apart by those who do not see red and green alike, on white and on black. */
const colours = ['#2274a5', '#d1603d', '#3b8b5a', '#8f5ea2']

/** A picture that needs nothing but itself: no script, no font, no style sheet. The y axis begins at 0. */
export function lineChart({ title, xLabel, yLabel, lines }: Chart): string {
  const all = lines.flatMap(({ points }) => points)
  const xs = [...new Set(all.map(({ x }) => x))].toSorted((a, b) => a - b)
  const [first, last] = [Math.log10(xs[0] ?? 1), Math.log10(xs.at(-1) ?? 10)]
  const step = niceStep(Math.max(...all.map(({ high }) => high)))
  const top = step * Math.ceil(Math.max(...all.map(({ high }) => high)) / step)
  const at = {
    x: (value: number): number =>
      edge.left +
      ((Math.log10(value) - first) / (last - first || 1)) * (width - edge.left - edge.right),
    y: (value: number): number =>
      height - edge.bottom - (value / top) * (height - edge.top - edge.bottom),
  }
  const text = (x: number, y: number, words: string, more = ''): string =>
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escaped(words)}</text>`
  const stroke = (d: string, more: string): string => `<path d="${d}" fill="none" ${more}/>`
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, n) => n * step)
  const parts = [
    text(edge.left, 28, title, 'font-size="16" font-weight="600"'),
    ...ticks.map(
      (tick) =>
        stroke(
          `M${edge.left} ${at.y(tick).toFixed(1)}H${width - edge.right}`,
          'stroke="#888" stroke-opacity="0.3"',
        ) + text(edge.left - 8, at.y(tick) + 4, shortNumber(tick), 'text-anchor="end"'),
    ),
    ...xs.map((x) =>
      text(at.x(x), height - edge.bottom + 20, shortNumber(x), 'text-anchor="middle"'),
    ),
    text((edge.left + width - edge.right) / 2, height - 20, xLabel, 'text-anchor="middle"'),
    text(-height / 2, 18, yLabel, 'text-anchor="middle" transform="rotate(-90)"'),
    ...lines.map(({ name, points }, line) => {
      const colour = colours[line % colours.length] ?? '#888'
      const path = points.map(({ x, y }) => `${at.x(x).toFixed(1)} ${at.y(y).toFixed(1)}`).join('L')
      return [
        stroke(`M${path}`, `stroke="${colour}" stroke-width="2"`),
        ...points.map(
          ({ x, y, low, high }) =>
            stroke(
              `M${at.x(x).toFixed(1)} ${at.y(low).toFixed(1)}V${at.y(high).toFixed(1)}`,
              `stroke="${colour}" stroke-opacity="0.5"`,
            ) +
            `<circle cx="${at.x(x).toFixed(1)}" cy="${at.y(y).toFixed(1)}" r="3.5" fill="${colour}"/>`,
        ),
        text(width - edge.right, 28 + line * 16, name, `text-anchor="end" fill="${colour}"`),
      ].join('')
    }),
  ]
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ` +
    `font-family="system-ui, sans-serif" font-size="12" fill="#777" role="img" aria-label="${escaped(title)}">\n` +
    `${parts.join('\n')}\n</svg>\n`
  )
}

/** 1, 2 or 5 of some power of ten, about a fifth of the height. */
function niceStep(highest: number): number {
  const rough = highest / 5 || 1
  const power = 10 ** Math.floor(Math.log10(rough))
  return ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power
}

function shortNumber(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000}M`
  if (value >= 1_000) return `${value / 1_000}k`
  return String(Number(value.toPrecision(3)))
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
