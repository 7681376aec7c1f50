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
