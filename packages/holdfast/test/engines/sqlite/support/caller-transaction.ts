import { randomUUID } from 'node:crypto'
import type { SqlitePlace } from './each-sqlite.ts'
import type { Handle } from './sqlite-clients.ts'

/** A name that nobody else uses. */
export function fresh(): string {
  return randomUUID()
}

/** A connection of the caller's own with an open transaction; rolled back when the test ends. */
export function callerTransaction(place: SqlitePlace, begin = 'BEGIN'): Handle {
  const handle = place.open()
  handle.exec(begin)
  return handle
}
