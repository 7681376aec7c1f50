import { cleanText } from '../terminal/clean-text.ts'
import type { Paint } from '../terminal/paint.ts'
import { cutText, padText, textWidth } from '../terminal/text-width.ts'

/** A column: its title, and what it shows of a row. */
export interface Column<R> {
  readonly title: string
  readonly of: (row: R) => string
  /** Numbers stand below each other. */
  readonly right?: boolean
}

const gap = 2
const least = 8

/** Rows below titles. Where they do not fit, the widest columns are cut. */
export function renderTable<R>(
  columns: readonly Column<R>[],
  rows: readonly R[],
  { width, paint }: { readonly width: number; readonly paint: Paint },
): string[] {
  const cells = rows.map((row) => columns.map(({ of }) => cleanText(of(row))))
  const widths = columns.map(({ title }, at) =>
    Math.max(textWidth(title), ...cells.map((line) => textWidth(line[at] as string))),
  )
  shrink(widths, width - gap * (columns.length - 1))
  const lineOf = (texts: readonly string[]): string =>
    texts
      .map((text, at) => {
        const room = widths[at] as number
        const shown = cutText(text, room)
        return columns[at]?.right === true
          ? ' '.repeat(room - textWidth(shown)) + shown
          : padText(shown, room)
      })
      .join(' '.repeat(gap))
      .trimEnd()
  return [paint('bold', lineOf(columns.map(({ title }) => title))), ...cells.map(lineOf)]
}

/** Takes from the widest until all fit, or nothing can be taken. */
function shrink(widths: number[], room: number): void {
  for (;;) {
    const over = widths.reduce((sum, each) => sum + each, 0) - room
    const widest = Math.max(...widths)
    if (over <= 0 || widest <= least) return
    const at = widths.indexOf(widest)
    const next = Math.max(least, ...widths.filter((each) => each < widest))
    widths[at] = Math.max(next === widest ? widest - 1 : next - 1, widest - over, least)
  }
}
