import type { Row } from '../../core/driver.ts'
import type { Blocker } from '../../core/errors.ts'
import { labelMark } from './locks.ts'

/** The application's own name, and what our label behind it says. */
export function splitApplication(text: string): { application: string; label: string | undefined } {
  const at = text.indexOf(labelMark)
  return at === -1
    ? { application: text, label: undefined }
    : { application: text.slice(0, at), label: text.slice(at + labelMark.length) }
}

/** Reads rows of `lockHolders` and its like, oldest transaction first. */
export function blockersFrom(rows: readonly Row[]): readonly Blocker[] {
  return rows
    .map((row) => {
      const { application, label } = splitApplication(String(row['application_name']))
      return {
        pid: Number(row['pid']),
        name: label ?? application,
        ageMs: Number(row['age_ms']),
        state: String(row['state']),
        query: String(row['query']),
      }
    })
    .toSorted((a, b) => b.ageMs - a.ageMs)
}
