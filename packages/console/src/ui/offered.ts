/** What there is to see depends on the engine of the database. */
import type { DatabaseInfo, EngineName } from '../core/wire.ts'
import { type PageName, pages } from './router.ts'

const names: Readonly<Record<EngineName, readonly PageName[]>> = {
  postgres: pages,
  innodb: ['now', 'doctor'],
}

/** The pages of a database, in their order. */
export function pagesOf(database: DatabaseInfo | undefined): readonly PageName[] {
  return names[database?.engine ?? 'postgres']
}
