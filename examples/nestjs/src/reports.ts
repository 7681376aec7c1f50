import { CurrentTransaction, Tick } from '@holdfast/nestjs'
import { Injectable } from '@nestjs/common'
import type { Tick as AnyTick } from 'holdfast/schedule'
import type { PoolClient } from 'pg'

@Injectable()
export class Reports {
  constructor(private readonly current: CurrentTransaction<PoolClient>) {}

  // #region count
  /** Every second, in one of all processes; the report and the end of the tick commit together. */
  @Tick({ name: 'tickets-sold', every: '1 s', guarantee: 'transactional' })
  async count(tick: AnyTick): Promise<void> {
    await this.current.tx.query('INSERT INTO report SELECT $1, count(*) FROM ticket', [
      tick.at.toISOString(),
    ])
  }
  // #endregion
}
