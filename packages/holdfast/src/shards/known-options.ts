import type { KnownOptions } from '../core/known-options.ts'
import type { AcrossOptions } from './hold-across.ts'
import type { InitShardsOptions } from './init-shards.ts'
import type { MoveOptions, MovesOptions } from './moves.ts'
import type { RebalanceOptions } from './plan-rebalance.ts'
import type { RepairOptions } from './repair.ts'
import type { ShardedOptions } from './sharded-driver.ts'

export const acrossOptions: KnownOptions<AcrossOptions> = {
  operationId: 'checked',
  ttl: 'checked',
}

export const initShardsOptions: KnownOptions<InitShardsOptions> = {
  schema: 'text',
  ownerOf: 'function',
}

export const shardedOptions: KnownOptions<ShardedOptions> = {
  schema: 'text',
  wait: 'checked',
}

export const rebalanceOptions: KnownOptions<RebalanceOptions> = {
  drain: 'texts',
  atOnce: 'number',
}

export const repairOptions: KnownOptions<RepairOptions> = {
  tables: 'texts',
  adopt: 'boolean',
  without: 'texts',
}

export const movesOptions: KnownOptions<MovesOptions> = {
  schema: 'text',
  pause: 'checked',
  wait: 'checked',
  onProgress: 'function',
}

export const moveOptions: KnownOptions<MoveOptions> = {
  buckets: 'list',
  to: 'text',
  tables: 'texts',
}
