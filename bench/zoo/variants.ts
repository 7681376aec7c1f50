/** The axes in which every entry is varied, and which variant a seed chooses. */
import { randomFor } from '../harness/random.ts'
import { type ClientName, clientNames } from './clients.ts'
import { entries } from './entries.ts'
import type { Entry } from './model.ts'

export const waits = [0, 10, 80, 400] as const
const waitKinds = ['timer', 'fetch', 'fetch-here', 'thread'] as const
export const keyKinds = ['uuid', 'uuid-by-server', 'nanoid', 'serial', 'natural'] as const
const clocks = ['none', 'seconds', 'milliseconds', 'iso', 'now()', 'now()-seconds'] as const
/** `beside`: a table of the same name in another schema; `named`: and the flows name theirs with its schema. */
const schemas = ['one', 'beside', 'named'] as const
/** What only the first use does: nothing, one query for all, or one query of each who comes before it is known. */
const caches = ['none', 'promise', 'value'] as const
/** Where the flows run: called by the explorer, or by requests to an HTTP server of this process. */
const places = ['direct', 'direct', 'http'] as const

export interface Variant {
  readonly client: ClientName
  readonly waitMs: (typeof waits)[number]
  readonly waitKind: (typeof waitKinds)[number]
  readonly keys: (typeof keyKinds)[number]
  readonly clock: (typeof clocks)[number]
  readonly schema: (typeof schemas)[number]
  readonly cache: (typeof caches)[number]
  readonly place: (typeof places)[number]
}

/** One exploration. */
export interface Task {
  readonly entry: string
  /** Chooses the variant together with the entry, and is the seed of the explorer's own choices. */
  readonly seed: number
  readonly variant: Variant
}

/**
 * Of the entry's explorations number `seed`: 16 in a row have every client with every wait once, whatever they begin
 * with, and all other axes are drawn.
 */
export function taskOf(entry: Entry, seed: number): Task {
  const place = entries.indexOf(entry)
  const random = randomFor(seed, place)
  const pick = <T>(items: readonly T[]): T => items[random.integer(0, items.length - 1)] as T
  // Both change with every seed, and in 16 of them no pair comes twice. Entries begin at different places.
  const turn = seed + place
  const client = clientNames[turn % clientNames.length] as ClientName
  const waitMs = waits[(Math.floor(turn / clientNames.length) + turn) % waits.length] ?? 0
  return {
    entry: entry.name,
    seed,
    variant: {
      client,
      waitMs,
      waitKind: pick(waitKinds),
      keys: pick(keyKinds),
      clock: pick(clocks),
      schema: pick(schemas),
      cache: pick(caches),
      // Which flow a statement of postgres.js belongs to is told by its port alone, and a server has only one.
      place: client === 'postgres.js' ? 'direct' : pick(places),
    },
  }
}

export function shown(variant: Variant): string {
  const { client, waitMs, waitKind, keys, clock, schema, cache, place } = variant
  const wait = waitMs === 0 ? 'no wait' : `${waitKind} of ${waitMs} ms`
  return `${client}, ${wait}, keys ${keys}, clock ${clock}, schemas ${schema}, cache ${cache}, ${place}`
}
