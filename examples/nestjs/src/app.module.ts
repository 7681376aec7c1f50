import { HoldfastModule } from '@holdfast/nestjs'
import { Module } from '@nestjs/common'
import { fromPg } from 'holdfast/drivers/pg'
import { Pool } from 'pg'
import { DatabaseModule } from './database.module.js'
import { CallsController } from './calls.controller.js'
import { HealthController } from './health.controller.js'
import { PaymentsController } from './payments.controller.js'
import { Reports } from './reports.js'
import { Tickets } from './tickets.js'
import { TicketsController } from './tickets.controller.js'

// #region module
@Module({
  imports: [
    HoldfastModule.forRootAsync({
      imports: [DatabaseModule],
      inject: [Pool],
      useFactory: (pool: Pool) => ({ driver: fromPg(pool), afterClose: () => pool.end() }),
    }),
  ],
  controllers: [TicketsController, PaymentsController, CallsController, HealthController],
  providers: [Tickets, Reports],
})
export class AppModule {}
// #endregion
