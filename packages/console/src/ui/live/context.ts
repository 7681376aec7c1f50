import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Action, Info } from '../../core/wire.ts'
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

/** May this person do that, to this database? */
export function useMay(): (action: Action) => boolean {
  const info = useInfo()
  const name = useDatabase()
  const database = info.databases.find((one) => one.name === name) ?? info.databases[0]
  return (action) => (database?.features.actions ?? false) && info.actions.includes(action)
}
