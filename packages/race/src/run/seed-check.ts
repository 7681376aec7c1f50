import type { Trouble } from '../core/model.ts'
import type { StateReader } from './final-state.ts'

/** The first runs tell: what a seed leaves behind once it leaves behind always. */
const checked = 6

/** Whether the seed brings the tables back: what it does not would look like the flows' doing. */
export interface SeedCheck {
  /** Called when the seed has run, before every run. */
  look(): Promise<Trouble | undefined>
}

/** `seed` is run once more at the beginning, to see what of it is chance. */
export function createSeedCheck(states: StateReader, seed: () => Promise<void>): SeedCheck {
  let first: ReadonlyMap<string, string> | undefined
  let runs = 0
  const chance = new Set<string>()

  async function look(): Promise<Trouble | undefined> {
    runs += 1
    if (runs > checked) return undefined
    const columns = await states.columns()
    if (first === undefined) {
      await seed()
      first = await states.columns()
      for (const name of different(columns, first)) chance.add(name)
      return undefined
    }
    const [left] = different(columns, first).filter((name) => !chance.has(name))
    if (left === undefined) return undefined
    return {
      kind: 'seed-differs',
      message: `After the seed ${left} is not what it was after the seed of the first run: the seed does not restore everything that the flows change. Let it empty and fill every table they write to.`,
    }
  }

  return { look }
}

function different(
  one: ReadonlyMap<string, string>,
  other: ReadonlyMap<string, string>,
): readonly string[] {
  const names = new Set([...one.keys(), ...other.keys()])
  return [...names].filter((name) => one.get(name) !== other.get(name))
}
