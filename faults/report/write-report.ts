import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { History } from '../history/read-history.ts'
import { markdown } from './markdown.ts'
import { page } from './page.ts'
import { type RunReport, summaryOf } from './run-report.ts'
import { timeline } from './timeline.ts'

/** An episode to be drawn. */
export interface Pictured {
  readonly title: string
  readonly history: History
}

/** Writes `report.md`, `report.html`, `report.json` and a picture per episode that was chosen. */
export function writeReport(folder: string, run: RunReport, pictured: readonly Pictured[]): void {
  mkdirSync(folder, { recursive: true })
  const pictures = pictured.map(({ title, history }, at) => ({
    title,
    file: `timeline-${at + 1}.svg`,
    svg: timeline(history, title),
  }))
  for (const { file, svg } of pictures) writeFileSync(join(folder, file), svg)
  const summary = summaryOf(run)
  writeFileSync(join(folder, 'report.md'), markdown(run, summary, pictures))
  writeFileSync(
    join(folder, 'report.html'),
    page(
      run,
      summary,
      pictures.map(({ svg }) => svg),
    ),
  )
  writeFileSync(join(folder, 'report.json'), `${JSON.stringify(run)}\n`)
}
