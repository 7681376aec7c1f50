import type { KnownOptions } from '../core/known-options.ts'
import type { GrantsOptions } from './grants.ts'
import type { InspectOptions } from './inspect.ts'
import type { MigrateOptions } from './migrate.ts'
import type { PlanOptions } from './plan.ts'

export const grantsOptions: KnownOptions<GrantsOptions> = {
  role: 'text',
  schema: 'text',
}

export const inspectOptions: KnownOptions<InspectOptions> = {
  schema: 'text',
  role: 'text',
}

export const migrateOptions: KnownOptions<MigrateOptions> = {
  schema: 'text',
  repair: 'boolean',
  onProgress: 'function',
}

export const planOptions: KnownOptions<PlanOptions> = {
  schema: 'text',
  from: 'text',
  transaction: 'boolean',
}
