import { holdfastError } from '../core/errors.ts'
import { objectGiven } from '../core/given.ts'
import type { KnownOptions } from '../core/known-options.ts'
import type { CircuitOptions } from './circuit.ts'
import type { KyselyOptions } from './kysely.ts'
import type { PgOptions } from './pg.ts'
import type { PostgresJsOptions } from './postgres-js.ts'
import type { PrismaOptions } from './prisma.ts'

export const circuitOptions: KnownOptions<CircuitOptions> = {
  failures: 'checked',
  openFor: 'checked',
}

export const kyselyOptions: KnownOptions<KyselyOptions> = {
  pool: 'object',
}

export const pgOptions: KnownOptions<PgOptions> = {
  prepare: 'checked',
  connectWithin: 'checked',
}

export const postgresJsOptions: KnownOptions<PostgresJsOptions> = {
  prepare: 'checked',
  answerWithin: 'checked',
}

export const prismaOptions: KnownOptions<PrismaOptions> = {
  transactionTimeoutMs: 'checked',
}

/** Of a driver that has none: what is given would be passed over without a word. @throws OPTION_INVALID */
export function assertNoOptions(given: object | undefined, by: string): void {
  const [option] = Object.keys(objectGiven(given, 'options'))
  if (option === undefined) return
  const details = { option, subject: `${by} has no options`, allowed: [] }
  throw holdfastError('OPTION_INVALID', { details })
}
