import { listMoves } from '../engines/postgres/shards/moves.ts'
import { occupiedBuckets } from '../engines/postgres/shards/shards.ts'
import { failureOf, type PrimaryFailure } from '../tx/ask-each.ts'
import { type ClusterStatus, clusterStatus, type MoveEntry } from './cluster-status.ts'
import { confirmPrimaries } from './confirm.ts'
import { type MoveSide, ofPrimary } from './move-side.ts'
import { ShardMap, type ShardReading } from './shard-map.ts'

/** What primaries say, each by its name, and who said nothing. */
export interface Readings {
  readonly readings: ReadonlyMap<string, ShardReading>
  readonly failures: readonly PrimaryFailure[]
}

const endedMoves = 5

/** Looks at all primaries at the same time; one that does not answer keeps nobody from the rest. */
export class ClusterLooks<Tx> {
  readonly sides: ReadonlyMap<string, MoveSide<Tx>>
  readonly #schema: string
  /** Those that the operator has given up. */
  readonly #without: readonly string[]

  constructor(
    sides: ReadonlyMap<string, MoveSide<Tx>>,
    schema: string,
    without: readonly string[] = [],
  ) {
    this.sides = sides
    this.#schema = schema
    this.#without = without
  }

  /** The same without some of them. */
  without(names: readonly string[]): ClusterLooks<Tx> {
    const left = [...this.sides].filter(([name]) => !names.includes(name))
    return new ClusterLooks(new Map(left), this.#schema, names)
  }

  /** @throws SHARD_MAP_INVALID if they are not of one cluster, or have other names */
  async read(): Promise<Readings> {
    const { answers, failures } = await this.#each((side) => side.reading())
    assertOneCluster(answers)
    return { readings: answers, failures }
  }

  /** Those that were started, or restored, since they were compared with the others are told what these have. */
  async confirmed(): Promise<Readings> {
    const before = await this.read()
    const isComplete = before.failures.length === 0
    const terms = { schema: this.#schema, isComplete, without: this.#without }
    await confirmPrimaries(before.readings, terms, async (name, statement) =>
      this.sides.get(name)?.ask(statement),
    )
    return await this.read()
  }

  /** The cluster that these are parts of. @throws SHARD_MAP_INVALID, SHARD_PRIMARY_NEEDED */
  async clusterOf(sides: readonly MoveSide<Tx>[]): Promise<string> {
    const readings = await Promise.all(
      sides.map(async (side) => [side.name, await ofPrimary(side.name, side.reading())] as const),
    )
    assertOneCluster(new Map(readings))
    return (readings[0] as (typeof readings)[0])[1].cluster
  }

  async status(): Promise<ClusterStatus> {
    const { answers, failures } = await this.#each(async (side) => {
      const [reading, moves, occupied] = await Promise.all([
        side.reading(),
        side.look(listMoves(this.#schema, endedMoves)),
        side.look(occupiedBuckets(this.#schema)),
      ])
      return {
        name: side.name,
        reading,
        moves: JSON.parse(moves ?? '[]') as MoveEntry[],
        occupied: JSON.parse(occupied ?? '[]') as number[],
      }
    })
    const looks = [...answers.values()]
    assertOneCluster(new Map(looks.map(({ name, reading }) => [name, reading])))
    return clusterStatus(looks, failures)
  }

  async #each<T>(
    look: (side: MoveSide<Tx>) => Promise<T>,
  ): Promise<{ readonly answers: Map<string, T>; readonly failures: readonly PrimaryFailure[] }> {
    const answers = new Map<string, T>()
    const failures: PrimaryFailure[] = []
    await Promise.all(
      [...this.sides].map(async ([name, side]) => {
        try {
          answers.set(name, await look(side))
        } catch (error) {
          failures.push({ primary: name, error })
        }
      }),
    )
    if (answers.size === 0) throw failureOf(failures, this.sides.size) as Error
    // In the order in which they were named.
    const names = [...this.sides.keys()].filter((name) => answers.has(name))
    return { answers: new Map(names.map((name) => [name, answers.get(name) as T])), failures }
  }
}

function assertOneCluster(readings: ReadonlyMap<string, ShardReading>): void {
  const map = new ShardMap()
  for (const [name, reading] of readings) map.merge(name, reading)
}
