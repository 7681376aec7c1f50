import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { grants } from '../../src/schema/index.ts'
import type { PgFixture } from './pg-fixture.ts'
import { newRole } from './schema-fixture.ts'

/** Connections of a role of its own that has what `grants` gives, and nothing else. */
export interface AppRole {
  pool: pg.Pool
  name: string
}

export function appRole(fixture: PgFixture): AppRole {
  const role = {} as AppRole
  beforeAll(async () => {
    role.name = await newRole(fixture.observer, 'LOGIN')
    await fixture.observer.query(grants({ role: role.name }))
    const url = new URL(fixture.database.directUrl)
    url.username = encodeURIComponent(role.name)
    role.pool = new pg.Pool({ connectionString: url.href, max: 4 })
  })
  afterAll(async () => await role.pool.end())
  return role
}
