/**
 * A reporter of vitest: writes the files with a test that failed, or with an error that no test of theirs caught, to the
 * file that HOLDFAST_FAILED_FILES names, one in a line. None if they are more than a few, or if nobody knows where an
 * error came from: that is nothing to try again.
 */
import { writeFileSync } from 'node:fs'
import type { Reporter } from 'vitest/node'

/** Of some 400. */
const most = 12

export default class FailedFiles implements Reporter {
  readonly onTestRunEnd: NonNullable<Reporter['onTestRunEnd']> = (modules, unhandled) => {
    const known = new Set(modules.map(({ moduleId }) => moduleId))
    const failed = new Set([
      ...modules.filter((each) => each.state() === 'failed').map(({ moduleId }) => moduleId),
      ...unhandled.map((error) => String(error['VITEST_TEST_PATH'])),
    ])
    const again = failed.size <= most && [...failed].every((file) => known.has(file))
    const listed = again ? [...failed] : []
    const path = process.env['HOLDFAST_FAILED_FILES']
    if (path !== undefined) writeFileSync(path, listed.map((file) => `${file}\n`).join(''))
  }
}
