import { mkdir, writeFile } from 'node:fs/promises'
import { type ChartLine, lineChart } from '../harness/line-chart.ts'
import type { Summary } from '../harness/summary.ts'

export const results = new URL('../results/', import.meta.url)

export function growthLine(
  name: string,
  points: readonly (Summary & { readonly size: number })[],
): ChartLine {
  return {
    name,
    points: points.map(({ size, median, p10, p90 }) => ({
      x: size,
      y: median,
      low: p10,
      high: p90,
    })),
  }
}

export async function writeGrowthChart(
  file: URL,
  xLabel: string,
  lines: readonly ChartLine[],
): Promise<void> {
  await mkdir(results, { recursive: true })
  await writeFile(
    file,
    lineChart({
      title: 'Latency of one operation by history',
      xLabel,
      yLabel: 'median latency, ms',
      lines,
    }),
  )
}

/** As it is in names of ratios. */
export function named(size: number): string {
  return size >= 1_000_000 ? `${size / 1_000_000}m` : `${size / 1_000}k`
}
