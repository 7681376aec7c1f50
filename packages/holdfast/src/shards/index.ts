export { bucketOf } from '../core/bucket.ts'
export {
  type AcrossOptions,
  type AcrossPart,
  type AcrossVerdict,
  holdAcross,
  type HoldingBook,
} from './hold-across.ts'
export { initShards, type InitShardsOptions } from './init-shards.ts'
export { type ShardedDriver, shardedDriver, type ShardedOptions } from './sharded-driver.ts'
export {
  type ClusterStatus,
  createMoves,
  type MoveEntry,
  type MoveOptions,
  type Moves,
  type MovesOptions,
  type MovingPrimary,
  type PrimaryStatus,
} from './moves.ts'
export type { MoveOutcome, MoveProgress, MoveStep } from './move-run.ts'
export type { PlannedMove, RebalanceOptions } from './plan-rebalance.ts'
