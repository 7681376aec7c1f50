import type { Trouble } from '../../core/model.ts'
import type { StateReader } from './final-state.ts'

/** The first runs tell: what a seed leaves behind once it leaves behind always. */
const checked = 6

/** Whether every run begins with the same rows: what is left of the run before would look like the flows' doing. */
export interface SeedCheck {
  /** Called when the seed has run, before every run. */
  look(): Promise<Trouble | undefined>
}

/**
 * `seed` is run once more at the beginning, to see what of it is chance. Without one nothing but the flows themselves
 * brings anything back, and what they do in one order says nothing about another: every run is checked.
 */
export function createSeedCheck(
  states: StateReader,
  by: 'seed' | 'restore' | 'clone' | undefined,
  seed: (() => Promise<void>) | undefined,
): SeedCheck {
  let first: ReadonlyMap<string, string> | undefined
  let runs = 0
  const chance = new Set<string>()

  async function look(): Promise<Trouble | undefined> {
    runs += 1
    if (seed && (runs > checked || states.isPutBack())) return undefined
    const columns = await states.columns()
    if (first === undefined) {
      await seed?.()
      first = seed ? await states.columns() : columns
      for (const name of different(columns, first)) chance.add(name)
      return undefined
    }
    const [left] = different(columns, first).filter((name) => !chance.has(name))
    if (left === undefined) return undefined
    return { kind: 'seed-differs', message: messageOf(left, by) }
  }

  return { look }
}

function messageOf(column: string, by: 'seed' | 'restore' | 'clone' | undefined): string {
  if (by === undefined) return withoutSeed(column)
  return by === 'seed' ? afterSeed(column) : afterState(column, by)
}

function afterState(column: string, state: 'restore' | 'clone'): string {
  const rest =
    state === 'restore'
      ? `Try state: 'clone', or write a seed that fills it.`
      : 'Write a seed that fills it.'
  return `With state: '${state}' ${column} is not what it was before the first run: something other than the rows of the tables decides what is in it. ${rest}`
}

function afterSeed(column: string): string {
  return `After the seed ${column} is not what it was after the seed of the first run: the seed does not restore everything that the flows change. Let it empty and fill every table they write to, and refresh materialized views.`
}

function withoutSeed(column: string): string {
  return `${column} is not what it was before the first run, so no two runs begin alike. Give a seed that empties and fills every table the flows write to, or state: 'restore', which puts all rows back.`
}

function different(
  one: ReadonlyMap<string, string>,
  other: ReadonlyMap<string, string>,
): readonly string[] {
  const names = new Set([...one.keys(), ...other.keys()])
  return [...names].filter((name) => one.get(name) !== other.get(name))
}
