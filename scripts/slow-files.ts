/** A reporter of vitest: says at the end where the time went, by project and by file, so that one knows what to thin. */
import { relative } from 'node:path'
import type { Reporter } from 'vitest/node'

const shown = 40

export default class SlowFiles implements Reporter {
  readonly onTestRunEnd: NonNullable<Reporter['onTestRunEnd']> = (modules) => {
    const files = modules.map((each) => {
      const { duration, collectDuration, setupDuration } = each.diagnostic()
      return {
        project: each.project.name,
        file: relative(process.cwd(), each.moduleId),
        ms: duration + collectDuration + setupDuration,
      }
    })
    const total = sum(files)
    const projects = [...Map.groupBy(files, ({ project }) => project)]
      .map(([project, of]) => ({ name: project, ms: sum(of) }))
      .sort(slowestFirst)
    const slowest = files
      .map(({ project, file, ms }) => ({ name: `${project} ${file}`, ms }))
      .sort(slowestFirst)
      .slice(0, shown)
    const lines = [...projects, ...slowest].map(({ name, ms }) => `${seconds(ms)} ${name}`)
    process.stdout.write(`\n=== ${seconds(total)} s of work in files, by project, and by file\n`)
    process.stdout.write(`${lines.join('\n')}\n`)
  }
}

interface Timed {
  readonly ms: number
}

const slowestFirst = (one: Timed, other: Timed): number => other.ms - one.ms

const sum = (timed: readonly Timed[]): number => timed.reduce((ms, each) => ms + each.ms, 0)

const seconds = (ms: number): string => (ms / 1_000).toFixed(1).padStart(7)
