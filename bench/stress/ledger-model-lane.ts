import type { Pool, PoolClient } from 'pg'
import type { Driver } from '../../packages/holdfast/src/core/driver.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createKernel, type Kernel } from '../../packages/holdfast/src/ledger/kernel.ts'
import type { LedgerModel } from '../../packages/holdfast/test/support/ledger-model.ts'
import type { LedgerPlayer } from '../../packages/holdfast/test/support/ledger-player.ts'
import { same } from './ledger-model-history.ts'
import type { SeenKnown } from './ledger-model-known.ts'

/** One schema with a clock of its own, and connections to it. */
export interface Lane {
  readonly schema: string
  readonly pool: Pool
  readonly driver: Driver<PoolClient>
  readonly kernel: Kernel<PoolClient>
  readonly known: SeenKnown
  /** Each has one connection. */
  readonly workers: readonly Kernel<PoolClient>[]
}

export function laneOn(pool: Pool, workerPools: readonly Pool[], schema: string): Lane {
  const driver = fromPg(pool)
  return {
    schema,
    pool,
    driver,
    known: new Map(),
    kernel: createKernel(driver, { schema }),
    workers: workerPools.map((one) => createKernel(fromPg(one), { schema })),
  }
}

/** A history on both sides. */
export interface Playing {
  readonly lane: Lane
  readonly player: LedgerPlayer
  model: LedgerModel
}

/** Where told and modelled part. */
export class Parting extends Error {
  /** Which sort of difference: one that is cut down stays one of its sort. */
  readonly sort: string
  readonly told: unknown
  readonly modelled: unknown

  constructor(sort: string, told: unknown, modelled: unknown) {
    super(`the ledger and the model differ: ${sort}`)
    this.sort = sort
    this.told = told
    this.modelled = modelled
  }
}

export function expectSame(sort: string, told: unknown, modelled: unknown): void {
  if (!same(told, modelled)) throw new Parting(sort, told, modelled)
}
