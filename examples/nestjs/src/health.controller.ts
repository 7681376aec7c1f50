import { HoldfastHealthIndicator } from '@holdfast/nestjs'
import { Controller, Get, ServiceUnavailableException } from '@nestjs/common'

/** With `@nestjs/terminus`: `health.check([() => indicator.check('database')])`. */
@Controller('health')
export class HealthController {
  constructor(private readonly indicator: HoldfastHealthIndicator) {}

  // #region health
  @Get()
  async health() {
    const result = await this.indicator.check('database')
    if (result.database.status === 'down') throw new ServiceUnavailableException(result)
    return result
  }
  // #endregion
}
