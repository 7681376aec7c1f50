import { randomUUID } from 'node:crypto'
import { bucketCount } from '../core/bucket.ts'
import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { initShardsOf, readShards } from '../engines/postgres/shards.ts'
import { answerOf, schemaMissing } from '../tx/call-function.ts'
import { ShardMap, type ShardReading } from './shard-map.ts'

/** Options of `initShards`. */
export interface InitShardsOptions {
  /** @defaultValue 'holdfast' */
  readonly schema?: string
  /** Who gets a bucket, by its number. @defaultValue all in turn */
  readonly ownerOf?: (bucket: number) => string
}

/**
 * Makes primaries parts of one cluster and gives each its buckets. Run it with all of them, before there
 * are data; run again after it stopped half-way, it goes on, and a primary that is new gets no bucket
 * yet. Needs the role that owns the schema. Answers the id of the cluster.
 *
 * @example await initShards({ north: fromPg(north), south: fromPg(south) })
 * @throws OPTION_INVALID, SCHEMA_MISSING, SHARD_MAP_INVALID
 */
export async function initShards<Tx>(
  primaries: Readonly<Record<string, Driver<Tx>>>,
  { schema = 'holdfast', ownerOf }: InitShardsOptions = {},
): Promise<string> {
  const names = Object.keys(primaries)
  if (names.length === 0) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'primaries', subject: 'primaries is empty' },
    })
  }
  try {
    const map = new ShardMap()
    let cluster: string | undefined
    for (const [name, { alone }] of Object.entries(primaries)) {
      const answer = answerOf(await alone.query(readShards(schema)))
      if (answer === null) continue
      const reading = JSON.parse(answer) as ShardReading
      map.merge(name, reading)
      ;({ cluster } = reading)
    }
    const owners = Array.from(
      { length: bucketCount },
      // What was given away before stays so, whatever is wished for now.
      (_, at) => map.ownerOf(at) ?? ownerOf?.(at) ?? (names[at % names.length] as string),
    )
    const stranger = owners.find((owner) => !names.includes(owner))
    if (stranger !== undefined) {
      throw holdfastError('OPTION_INVALID', {
        details: { option: 'primaries', subject: `${stranger} is none of the primaries` },
      })
    }
    cluster ??= randomUUID()
    for (const [name, { alone }] of Object.entries(primaries)) {
      await alone.query(initShardsOf(schema, cluster, name, owners))
    }
    return cluster
  } catch (error) {
    throw schemaMissing(error) ?? error
  }
}
