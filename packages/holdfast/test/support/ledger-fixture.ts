import { randomUUID } from 'node:crypto'
import { type PgFixture, pgFixture } from './pg-fixture.ts'

/** The same as `pgFixture`, with the ledger's tables in the schema `holdfast`, and others beside. */
export function ledgerFixture(beside = ''): PgFixture {
  return pgFixture(beside, 'installed')
}

/** A key, scope or operation id that nobody else uses. */
export function fresh(): string {
  return randomUUID()
}
