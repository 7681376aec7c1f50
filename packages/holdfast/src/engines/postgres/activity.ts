import type { Row } from '../../core/driver.ts'
import type { Blocker } from '../../core/errors.ts'
import { labelMark } from './locks.ts'

/** Reads rows of `lockHolders` and its like, oldest transaction first. */
export function blockersFrom(rows: readonly Row[]): readonly Blocker[] {
  return rows
    .map((row) => {
      const application = String(row['application_name'])
      const at = application.indexOf(labelMark)
      return {
        pid: Number(row['pid']),
        name: at === -1 ? application : application.slice(at + labelMark.length),
        ageMs: Number(row['age_ms']),
        state: String(row['state']),
        query: String(row['query']),
      }
    })
    .toSorted((a, b) => b.ageMs - a.ageMs)
}
