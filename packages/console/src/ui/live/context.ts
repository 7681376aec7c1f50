import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Action, DatabaseInfo, Info } from '../../core/wire.ts'
import { usePlace } from '../router.ts'

/** Who looks; set once somebody may. */
export const InfoContext = createContext<Info | undefined>(undefined)

export function useInfo(): Info {
  const info = useContext(InfoContext)
  if (info === undefined) throw new Error('shown to somebody who is not logged in')
  return info
}

/** The database that is looked at, by name; the first one if the address names none. */
export function useDatabase(): string | undefined {
  return usePlace().query.get('database') ?? undefined
}

/** What is known of the database that is looked at. */
export function useDatabaseInfo(): DatabaseInfo | undefined {
  const name = useDatabase()
  return databaseIn(useInfo(), name)
}

/** The first one, if there is none of that name. */
export function databaseIn(
  { databases }: Info,
  name: string | undefined,
): DatabaseInfo | undefined {
  return databases.find((one) => one.name === name) ?? databases[0]
}

/** Whether it is MariaDB or MySQL. */
export function useIsInnodb(): boolean {
  return useDatabaseInfo()?.engine === 'innodb'
}

/** May this person do that, to this database? */
export function useMay(): (action: Action) => boolean {
  const info = useInfo()
  const database = useDatabaseInfo()
  return (action) => (database?.features.actions ?? false) && info.actions.includes(action)
}
