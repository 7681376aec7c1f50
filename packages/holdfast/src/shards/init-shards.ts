import { randomUUID } from 'node:crypto'
import { bucketCount } from '../core/bucket.ts'
import type { Driver, Statement } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { moveRefusal } from '../engines/postgres/shards/moves.ts'
import { initShardsOf, occupiedBuckets, readShards } from '../engines/postgres/shards/shards.ts'
import { heard } from '../tx/ask-each.ts'
import { answerOf, needingSchema } from '../engines/postgres/sql/call-function.ts'
import { ShardMap, type ShardReading } from './shard-map.ts'
import { objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** Options of `initShards`. */
export interface InitShardsOptions {
  /** @defaultValue 'holdfast' */
  readonly schema?: string
  /** Who gets a bucket, by its number. @defaultValue the primary that has rows in it; of the others all in turn */
  readonly ownerOf?: (bucket: number) => string
}

const initShardsOptions: KnownOptions<InitShardsOptions> = {
  schema: 'text',
  ownerOf: 'function',
}

/**
 * Makes primaries parts of one cluster and gives each its buckets. Run it with all of them, and again with all when one is
 * added or taken out: each remembers who the others are. A bucket that has rows
 * stays where they are; where two primaries have rows in it, or one that is not to have it, nothing is done. Run again
 * after it stopped half-way, it goes on, and a primary that is new gets no bucket yet. Needs the role that owns the
 * schema. Answers the id of the cluster.
 *
 * @example await initShards({ north: fromPg(north), south: fromPg(south) })
 * @throws OPTION_INVALID, SCHEMA_MISSING, SHARD_MAP_INVALID, SHARD_INIT_REFUSED
 */
export async function initShards<Tx>(
  primaries: Readonly<Record<string, Driver<Tx>>>,
  given: InitShardsOptions = {},
): Promise<string> {
  const { schema = 'holdfast', ownerOf } = optionsGiven(given, initShardsOptions)
  const names = Object.keys(objectGiven(primaries, 'primaries'))
  for (const name of names) assertDriver(primaries[name], 'each of the primaries')
  if (names.length === 0) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'primaries', subject: 'primaries is empty' },
    })
  }
  const looks = await Promise.all(
    Object.entries(primaries).map(async ([name, { alone, engine }]) => {
      const ask = async (statement: Statement): Promise<string | null> =>
        answerOf(await heard(alone, engine, () => needingSchema(alone.query(statement))))
      return {
        name,
        alone,
        reading: await ask(readShards(schema)),
        occupied: JSON.parse((await ask(occupiedBuckets(schema))) ?? '[]') as number[],
      }
    }),
  )
  const map = new ShardMap()
  let cluster: string | undefined
  const occupants = new Map<number, string>()
  for (const { name, reading, occupied } of looks) {
    if (reading === null) for (const bucket of occupied) occupants.set(bucket, name)
    else {
      const known = JSON.parse(reading) as ShardReading
      map.merge(name, known)
      ;({ cluster } = known)
    }
  }
  const owners = Array.from(
    { length: bucketCount },
    // What was given away before stays so, whatever is wished for now; and what has rows stays where they are.
    (_, at) =>
      map.ownerOf(at) ?? ownerOf?.(at) ?? occupants.get(at) ?? (names[at % names.length] as string),
  )
  const stranger = owners.find((owner) => !names.includes(owner))
  if (stranger !== undefined) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'primaries', subject: `${stranger} is none of the primaries` },
    })
  }
  for (const { name, reading, occupied } of looks) {
    const strays = reading === null ? occupied.filter((bucket) => owners[bucket] !== name) : []
    if (strays.length > 0) throw refused(name, `${strays.length} buckets`)
  }
  cluster ??= randomUUID()
  for (const { name, alone } of looks) {
    try {
      await alone.query(initShardsOf(schema, cluster, name, owners, names))
    } catch (error) {
      throw moveRefusal(error) === 'refused' ? refused(name, 'buckets', error) : error
    }
  }
  return cluster
}

/** Nobody would find its rows again. */
function refused(name: string, buckets: string, cause?: unknown): Error {
  const subject = `${name} has rows in ${buckets} that are to be another's`
  return holdfastError('SHARD_INIT_REFUSED', { details: { subject }, cause })
}
