import { randomUUID } from 'node:crypto'
import { InjectHoldfast, VerdictRefused } from '@holdfast/nestjs'
import { Controller, Headers, HttpCode, Post } from '@nestjs/common'
import type { Holdfast } from 'holdfast'
import type { Quota } from 'holdfast/quota'
import type { PoolClient } from 'pg'

@Controller('calls')
export class CallsController {
  private readonly calls: Quota<PoolClient, number>

  constructor(@InjectHoldfast() hf: Holdfast<PoolClient>) {
    this.calls = hf.quota({ name: 'api-calls', limit: 3, per: 'day' })
  }

  // #region call
  /** Three a day; then 429, with `Retry-After`. */
  @Post()
  @HttpCode(200)
  async call(@Headers('x-user') user: string): Promise<{ left: number }> {
    const verdict = await this.calls.consume(user, 1, { operationId: randomUUID() })
    if (!verdict.ok) throw new VerdictRefused(verdict)
    return { left: verdict.available }
  }
  // #endregion
}
