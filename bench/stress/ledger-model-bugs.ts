import type { SchemaFiles } from '../../packages/holdfast/src/schema/schema-files.ts'
import { replacedFiles } from '../ledger/weakened-files.ts'

/** Bugs of the past, as they would be in the functions of today. */
const bugs = {
  // A limit that was set for a key did not count in a window that nobody had opened.
  pinned_unopened: [
    ['internal/standing', /AND k\.pinned\n/g, 'AND k.pinned AND false\n'],
    ['internal/pinned_allowance', /CASE WHEN b\.pinned THEN b\.allowance END/g, 'NULL::bigint'],
  ],
  // A refused operation of several lines gave back the balance, but not the time of a hold it had extended.
  undo_extended: [['app/apply', /h_expires := was_expires; h_changed := was_changed;/g, '']],
  // Of several lines for one key, a repetition found the first one for each.
  replay_kinds: [
    ['internal/replay', /ORDER BY u\.ord = o\.line \+ 1 DESC, u\.ord/g, 'ORDER BY u.ord'],
  ],
  // When the clock went back, a rate was filled up to the earlier time, and the time between flowed in twice.
  rate_clock_back: [
    ['app/apply', /THEN greatest\(moment, refilled\)/g, 'THEN moment'],
    [
      'internal/flows_in',
      /greatest\(pg_catalog\.floor\([^]*\), 0\)::bigint/g,
      'floor(extract(epoch FROM moment - filled_at) * 1000000 / every_us)::bigint',
    ],
  ],
  // What is put aside was not counted by a refusal without a lock.
  refusal_held: [
    [
      'internal/refusal',
      /coalesce\(b\.held, 0\), b\.allowance, b\.pinned/g,
      '0, b.allowance, b.pinned',
    ],
  ],
  // Where the clocks are set back over midnight, the day began the second time they showed it.
  day_of_change: [
    [
      'internal/first_moment',
      /THEN x\.later OPERATOR\(pg_catalog\.-\) x\.back ELSE x\.later END/g,
      'THEN x.later ELSE x.later END',
    ],
  ],
  // When a rolling window has room again went by what was written before the call.
  unwritten_takings: [['app/apply', /WHERE u\.slot = s AND u\.kind = 3/g, 'WHERE false']],
} as const satisfies Readonly<Record<string, readonly (readonly [string, RegExp, string])[]>>

export type ModelBug = keyof typeof bugs

export const modelBugs = Object.keys(bugs) as ModelBug[]

/** The ledger's own SQL with one bug of the past put back. */
export function withBug(bug: ModelBug): SchemaFiles {
  return replacedFiles(bugs[bug])
}
