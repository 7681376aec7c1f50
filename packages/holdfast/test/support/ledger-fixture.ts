import { randomUUID } from 'node:crypto'
import { beforeAll } from 'vitest'
import { fromPg } from '../../src/drivers/pg.ts'
import { migrate } from '../../src/schema/index.ts'
import { type PgFixture, pgFixture } from './pg-fixture.ts'

/** The same as `pgFixture`, with the ledger's tables in the schema `holdfast`, and others beside. */
export function ledgerFixture(beside = ''): PgFixture {
  const fixture = pgFixture(beside)
  beforeAll(async () => {
    await migrate(fromPg(fixture.observer))
  })
  return fixture
}

/** A key, scope or operation id that nobody else uses. */
export function fresh(): string {
  return randomUUID()
}
