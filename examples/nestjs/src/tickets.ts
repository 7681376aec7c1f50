import { CurrentTransaction, Guarded } from '@holdfast/nestjs'
import { ConflictException, Injectable } from '@nestjs/common'
import { lockKey } from 'holdfast'
import type { PoolClient } from 'pg'

// #region tickets
@Injectable()
export class Tickets {
  constructor(private readonly current: CurrentTransaction<PoolClient>) {}

  /** Counts and sells under the lock of the show: never more tickets than seats. */
  @Guarded((show: string) => lockKey('show', show), { wait: '10 s' })
  async sell(show: string, id: string): Promise<{ id: string; left: number }> {
    const { tx } = this.current
    const { rows } = await tx.query<{ left: number }>(
      `SELECT seats - (SELECT count(*) FROM ticket WHERE show = $1)::int AS left
       FROM show WHERE id = $1`,
      [show],
    )
    const left = rows[0]?.left ?? 0
    if (left <= 0) throw new ConflictException('sold out')
    await tx.query('INSERT INTO ticket VALUES ($1, $2)', [id, show])
    return { id, left: left - 1 }
  }
}
// #endregion
