import { type Engine, engines } from './databases.ts'
import type { Measured, Way } from './measure.ts'

export type Results = Readonly<Record<Engine, Readonly<Record<Way, Measured>>>>

const rows: readonly (readonly [keyof Measured, string])[] = [
  ['oversold', 'lamps sold that were not there'],
  ['overLimit', 'pictures over the limit of five'],
  ['untold', 'orders nobody will be told of'],
  ['jobsTwice', 'jobs done more than once'],
  ['reportsTwice', 'seconds with several reports'],
]

/** One table for all engines: by hand, then with Holdfast. */
export function table(results: Partial<Results>): string {
  const shown = engines.filter((engine) => results[engine] !== undefined)
  const line = (label: string, cells: readonly (string | number)[]): string =>
    [label.padEnd(32), ...cells.map((cell) => String(cell).padStart(10))].join('')
  return [
    line(
      '',
      shown.flatMap((engine) => ['', engine]),
    ),
    line(
      '',
      shown.flatMap(() => ['by hand', 'Holdfast']),
    ),
    ...rows.map(([what, label]) =>
      line(
        label,
        shown.flatMap((engine) => [
          results[engine]?.['by hand'][what] ?? '',
          results[engine]?.holdfast[what] ?? '',
        ]),
      ),
    ),
  ].join('\n')
}

/** Why the demo failed: nothing if it showed what it is there to show. */
export function faults(engine: Engine, results: Results[Engine]): string[] {
  const { holdfast, 'by hand': hand } = results
  return [
    ...rows
      .filter(([what]) => hand[what] === 0)
      .map(([, label]) => `${engine}, by hand: no ${label}`),
    ...rows
      .filter(([what]) => holdfast[what] > 0)
      .map(([what, label]) => `${engine}, Holdfast: ${holdfast[what]} ${label}`),
    ...(holdfast.missing > 0 ? [`${engine}, Holdfast: ${holdfast.missing} not done`] : []),
  ]
}
