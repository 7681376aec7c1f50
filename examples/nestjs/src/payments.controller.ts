import { CurrentTransaction, Once } from '@holdfast/nestjs'
import { Body, Controller, HttpCode, Post } from '@nestjs/common'
import type { PoolClient } from 'pg'

interface Paid {
  readonly id: string
  readonly amount: number
}

@Controller('webhooks')
export class PaymentsController {
  constructor(private readonly current: CurrentTransaction<PoolClient>) {}

  // #region paid
  /** A provider sends an event until it is answered: booked once, and each time the same answer. */
  @Post('paid')
  @HttpCode(200)
  @Once((event: Paid) => `paid:${event.id}`, { payload: (event) => event })
  async paid(@Body() event: Paid): Promise<{ booked: number; at: string }> {
    await this.current.tx.query('INSERT INTO payment VALUES ($1, $2)', [event.id, event.amount])
    return { booked: event.amount, at: new Date().toISOString() }
  }
  // #endregion
}
