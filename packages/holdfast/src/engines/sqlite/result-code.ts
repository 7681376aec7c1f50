import { layersOf } from '../../core/sql-state.ts'

/**
 * Errors of SQLite by their extended result code, which `node:sqlite` gives as a number and `better-sqlite3` as a name:
 * the lowest eight bits are the kind, and two kinds of BUSY mean opposite things.
 */
const codes: Readonly<Record<string, number>> = {
  SQLITE_ERROR: 1,
  SQLITE_BUSY: 5,
  SQLITE_BUSY_RECOVERY: 261,
  SQLITE_BUSY_SNAPSHOT: 517,
  SQLITE_BUSY_TIMEOUT: 773,
  SQLITE_LOCKED: 6,
  SQLITE_LOCKED_SHAREDCACHE: 262,
  SQLITE_NOMEM: 7,
  SQLITE_READONLY: 8,
  SQLITE_INTERRUPT: 9,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
  SQLITE_CONSTRAINT: 19,
  SQLITE_CONSTRAINT_CHECK: 275,
  SQLITE_CONSTRAINT_FOREIGNKEY: 787,
  SQLITE_CONSTRAINT_NOTNULL: 1299,
  SQLITE_CONSTRAINT_PRIMARYKEY: 1555,
  SQLITE_CONSTRAINT_TRIGGER: 1811,
  SQLITE_CONSTRAINT_UNIQUE: 2067,
  SQLITE_CONSTRAINT_ROWID: 2579,
  SQLITE_NOTADB: 26,
}

/** The extended code of an error of SQLite, however deep a client buried it, or `undefined` if it is none. */
function resultCodeOf(error: unknown): number | undefined {
  for (const { code, errcode } of layersOf(error)) {
    if (code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number') return errcode
    if (typeof code !== 'string' || !code.startsWith('SQLITE_')) continue
    // Of one that is not listed at least its kind: SQLITE_IOERR_FSYNC.
    const found = codes[code] ?? codes[code.split('_').slice(0, 2).join('_')]
    if (found !== undefined) return found
  }
  return undefined
}

const busySnapshot = 517

function kindOf(error: unknown): number | undefined {
  const code = resultCodeOf(error)
  return code === undefined ? undefined : code & 0xff
}

/** Somebody else writes; it may be tried again in the same transaction. */
export function isBusy(error: unknown): boolean {
  return kindOf(error) === codes['SQLITE_BUSY'] && resultCodeOf(error) !== busySnapshot
}

/** The transaction has read what somebody has changed since: it will never be able to write. */
export function isOldSnapshot(error: unknown): boolean {
  return resultCodeOf(error) === busySnapshot
}

export function isReadOnly(error: unknown): boolean {
  return kindOf(error) === codes['SQLITE_READONLY']
}

function says(error: unknown, words: RegExp): boolean {
  for (const { message } of layersOf(error))
    if (typeof message === 'string' && words.test(message)) return true
  return false
}

export function isMissingTable(error: unknown): boolean {
  return kindOf(error) === codes['SQLITE_ERROR'] && says(error, /no such table/i)
}

export function isMissingColumn(error: unknown): boolean {
  return kindOf(error) === codes['SQLITE_ERROR'] && says(error, /no such column/i)
}

export function isMissingSavepoint(error: unknown): boolean {
  return kindOf(error) === codes['SQLITE_ERROR'] && says(error, /no such savepoint/i)
}

/** Another row has this key, or this value of a unique index. */
export function isDuplicate(error: unknown): boolean {
  const code = resultCodeOf(error)
  return (
    code === codes['SQLITE_CONSTRAINT_PRIMARYKEY'] ||
    code === codes['SQLITE_CONSTRAINT_UNIQUE'] ||
    code === codes['SQLITE_CONSTRAINT_ROWID']
  )
}

/** BEGIN inside of a transaction that somebody has left open. */
export function isInsideAlready(error: unknown): boolean {
  return kindOf(error) === codes['SQLITE_ERROR'] && says(error, /within a transaction/i)
}

/** Of COMMIT: known to have kept nothing. Anything else may have been written before it failed. */
export function keptNothing(error: unknown): boolean {
  const kind = kindOf(error)
  return kind === codes['SQLITE_BUSY'] || kind === codes['SQLITE_CONSTRAINT']
}

/** The code by which a retry policy knows an error: PostgreSQL's for what means the same, else the number. */
export function codeOf(error: unknown): string | undefined {
  if (isOldSnapshot(error)) return '40001'
  const code = resultCodeOf(error)
  return code === undefined ? undefined : String(code)
}
