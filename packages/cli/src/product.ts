import type { Driver } from 'holdfast'
import type { ClaimsOptions } from 'holdfast/claims'
import type { HealthFinding } from 'holdfast/health'
import type { InnodbDriver } from 'holdfast/mysql'
import type { Interventions, Observer } from 'holdfast/observe'

/** What was set, wherever that was. On MariaDB and MySQL a schema is a database. */
export interface Places {
  readonly schema: string | undefined
  readonly claims: readonly ClaimsOptions[]
}

/** Which product a command talks to, and what it does there. What is loaded for one is not for the other. */
export function isMysql(driver: Driver<unknown>): driver is InnodbDriver<unknown> {
  return driver.engine.name === 'innodb'
}

/** Looks at it. Calls that only PostgreSQL has are refused by the other with ENGINE_NOT_OFFERED. */
export async function observerOf<Tx>(
  driver: Driver<Tx>,
  { schema, claims }: Places,
): Promise<Observer> {
  if (isMysql(driver)) {
    const { createObserver } = await import('holdfast/mysql')
    const options = schema === undefined ? {} : { database: schema }
    return createObserver(driver, options) as unknown as Observer
  }
  const { createObserver } = await import('holdfast/observe')
  return createObserver(driver, { ...(schema === undefined ? {} : { schema }), claims })
}

/** Ends statements and sessions. */
export async function interventionsOn<Tx>(
  driver: Driver<Tx>,
): Promise<Pick<Interventions, 'cancel' | 'terminate'>> {
  if (isMysql(driver)) {
    const { createInterventions } = await import('holdfast/mysql')
    return createInterventions(driver)
  }
  const { createInterventions } = await import('holdfast/observe')
  return createInterventions(driver)
}

/** Looks at what the guarantees rest on. */
export async function findingsOf<Tx>(
  driver: Driver<Tx>,
  { schema, claims }: Places,
  role: string | undefined,
): Promise<readonly HealthFinding[]> {
  const more = { claims, ...(role === undefined ? {} : { role }) }
  if (isMysql(driver)) {
    const { examine } = await import('holdfast/mysql')
    return await examine(driver, { ...more, ...(schema === undefined ? {} : { database: schema }) })
  }
  const { examine } = await import('holdfast/health')
  return await examine(driver, { ...more, ...(schema === undefined ? {} : { schema }) })
}
