import type { Ground } from './hunt.ts'
import { openSqliteLane, sqlitePlaces } from './sqlite-lane.ts'
import { sqliteWords } from './sqlite-words.ts'

export async function sqliteGround(): Promise<Ground> {
  return {
    words: sqliteWords,
    places: await sqlitePlaces(),
    lanesEach: 1,
    openLane: async (place) => await openSqliteLane(place),
  }
}
