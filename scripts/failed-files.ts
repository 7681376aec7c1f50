/**
 * A reporter of vitest: writes the files with a test that failed to the file that HOLDFAST_FAILED_FILES names, one in a
 * line. None if they are more than a few, or if an error belongs to no test: that is nothing to try again.
 */
import { writeFileSync } from 'node:fs'
import type { Reporter } from 'vitest/node'

const most = 5

export default class FailedFiles implements Reporter {
  readonly onTestRunEnd: NonNullable<Reporter['onTestRunEnd']> = (modules, unhandled) => {
    const failed = new Set(
      modules.filter((each) => each.state() === 'failed').map(({ moduleId }) => moduleId),
    )
    const listed = unhandled.length === 0 && failed.size <= most ? [...failed] : []
    const path = process.env['HOLDFAST_FAILED_FILES']
    if (path !== undefined) writeFileSync(path, listed.map((file) => `${file}\n`).join(''))
  }
}
