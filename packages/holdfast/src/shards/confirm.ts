import type { Statement } from '../core/driver.ts'
import { confirmShards } from '../engines/postgres/shards/shards.ts'
import { believedOwners, givenAway, type ShardReading } from './shard-map.ts'

/** Who was asked. */
interface Asked {
  readonly schema: string
  /** All that the caller knows have answered. */
  readonly isComplete: boolean
  /** Primaries that are gone, and need not be compared with. */
  readonly without?: readonly string[]
}

/**
 * Tells every primary that was started since it was last compared with others, or has what others got by a later
 * move, what these know. What cannot be told now is refused by the server when it is asked, and told then.
 *
 * Whether these are all, the servers know better than whoever asks: he may not have been told of one.
 */
export async function confirmPrimaries(
  readings: ReadonlyMap<string, ShardReading>,
  { schema, isComplete, without = [] }: Asked,
  tell: (name: string, statement: Statement) => Promise<unknown>,
): Promise<void> {
  const all = new Set([...readings.keys(), ...without])
  const isWhole = (): boolean => {
    const told = [...readings.values()]
    const owners = believedOwners(told).map(({ owner }) => owner)
    const members = told.flatMap((each) => each.members ?? [])
    return isComplete && [...owners, ...members].every((name) => all.has(name))
  }
  await Promise.allSettled(
    [...readings].map(async ([name, own]) => {
      const others = [...readings.values()].filter((each) => each !== own)
      const gone = givenAway(own, others)
      if (own.confirmed && gone.length === 0) return
      await tell(name, confirmShards(schema, gone, isWhole()))
    }),
  )
}
