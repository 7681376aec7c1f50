/** Seeds of ours that put rows back and compare them: nobody has to look once more whether they did. */
import type { DatabaseContext } from '../options.ts'

type Seed = (context: DatabaseContext) => Promise<unknown>

const tablesOf = new WeakMap<Seed, ReadonlySet<string>>()

/** The same seed; after it these tables, as SQL writes their names, have the same rows every time. */
export function exactly(seed: Seed, tables: readonly string[]): Seed {
  tablesOf.set(seed, new Set(tables))
  return seed
}

/** Undefined for a seed of which that is not known. */
export function tablesPutBack(seed: Seed | undefined): ReadonlySet<string> | undefined {
  return seed && tablesOf.get(seed)
}
