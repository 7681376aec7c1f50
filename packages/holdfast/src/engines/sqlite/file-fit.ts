import type { Row } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'

/** The first one with `unixepoch('subsec')`, by which leases are timed. */
const oldest = [3, 42] as const

/**
 * Looks whether a file can be locked between connections, from what `facts` was answered with. Gives its full name.
 *
 * @throws ENGINE_FILE_UNFIT, ENGINE_VERSION
 */
export function assertFile([row]: readonly Row[]): string {
  const { version, file, mode } = row ?? {}
  const [major = 0, minor = 0] = String(version).split('.').map(Number)
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    throw holdfastError('ENGINE_VERSION', { details: { subject: `SQLite ${major}.${minor}` } })
  }
  if (typeof file !== 'string' || file === '')
    throw unfit('it is in memory, where every connection has a database of its own')
  if (mode !== 'wal') throw unfit(`its journal mode is ${String(mode)}`)
  return file
}

export function unfit(subject: string, cause?: unknown): Error {
  return holdfastError('ENGINE_FILE_UNFIT', { details: { subject }, cause })
}
