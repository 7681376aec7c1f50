import { Idempotent } from '@holdfast/nestjs'
import { Body, Controller, Param, Post } from '@nestjs/common'
import { Tickets } from './tickets.js'

@Controller('shows')
export class TicketsController {
  constructor(private readonly tickets: Tickets) {}

  @Post(':show/tickets')
  async sell(@Param('show') show: string, @Body() body: { id: string }) {
    return await this.tickets.sell(show, body.id)
  }

  /** The same with `Idempotency-Key`: sent twice, sold once. `sell` joins the transaction of the key. */
  @Post(':show/orders')
  @Idempotent({ scope: (request) => String(request.headers['x-user'] ?? 'nobody') })
  async order(@Param('show') show: string, @Body() body: { id: string }) {
    return await this.tickets.sell(show, body.id)
  }
}
