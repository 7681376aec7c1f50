/** The runner of vitest in a brief run: passes over the tests that left-out.ts names, with what is set up for them alone. */
import { relative } from 'node:path'
import { type RunnerTask, type RunnerTestFile, TestRunner } from 'vitest'
import { titlesLeftOut } from './left-out.ts'

export default class LeaveOut extends TestRunner {
  onCollected(files: RunnerTestFile[] = []): void {
    for (const file of files) {
      const unseen = new Set(titlesLeftOut(relative(process.cwd(), file.filepath)))
      const titles = new Set(unseen)
      passOver(file.tasks, titles, unseen)
      // A title that was changed would be run again, and nobody would know.
      if (unseen.size > 0)
        throw new Error(
          `scripts/brief/left-out.ts names what is not there: ${[...unseen].join(', ')}`,
        )
    }
  }
}

function passOver(
  tasks: readonly RunnerTask[],
  titles: ReadonlySet<string>,
  unseen: Set<string>,
  isInside = false,
): void {
  for (const task of tasks) {
    const isNamed = titles.has(task.name)
    unseen.delete(task.name)
    const isOut = isInside || isNamed
    if (task.type === 'suite') {
      passOver(task.tasks, titles, unseen, isOut)
      if (isOut || task.tasks.every(({ mode }) => mode === 'skip')) task.mode = 'skip'
    } else if (isOut) task.mode = 'skip'
  }
}
