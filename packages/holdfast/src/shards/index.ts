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
  createMoves,
  type MoveOptions,
  type Moves,
  type MovesOptions,
  type MovingPrimary,
} from './moves.ts'
export type { ClusterStatus, Misplaced, MoveEntry, PrimaryStatus } from './cluster-status.ts'
export type { Repaired, RepairOptions } from './repair.ts'
export type { PrimaryFailure } from '../tx/ask-each.ts'
export type { MoveOutcome, MoveProgress, MoveStep } from './move-run.ts'
export type { PlannedMove, RebalanceOptions } from './plan-rebalance.ts'
