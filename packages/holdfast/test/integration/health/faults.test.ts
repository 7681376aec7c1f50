/**
 * Every fault, made on a real server: it is found under its code, it is the only finding, and what the
 * finding says to do puts it right.
 */
import { databaseOf, type PostgresServer, waitUntil } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HealthFinding } from '../../../src/health/index.ts'
import { type Fault, faults } from './faults.ts'
import { type HealthyPlace, healthyPlace, healthyServer } from './healthy-place.ts'

let server: PostgresServer
let place: HealthyPlace

beforeAll(async () => {
  server = await healthyServer()
  place = await healthyPlace(server)
})
afterAll(async () => {
  await place.close()
  await server.stop('immediate')
})

/** Settings of the server, and the end of a session, take a moment to be seen. */
async function findings(count: number, fault: Fault): Promise<readonly HealthFinding[]> {
  let last: readonly HealthFinding[] = []
  const seen = waitUntil(
    `there are ${count} findings`,
    async () => {
      last = await place.look(fault.options)
      return last.length === count ? last : undefined
    },
    { limitMs: 5_000 },
  )
  return await seen.catch(() => last)
}

// The control of every fault: before it, and after the fix of the one before it, there is nothing.
test('nothing to find', async () => {
  expect(await place.look()).toEqual([])
})

describe('found alone, and put right by its own fix:', () => {
  test.each(Object.entries(faults))('%s', async (_, fault) => {
    const { stage, code, object, says = /./, follow, tidy } = fault
    const database = databaseOf(place.url)
    if (typeof stage === 'string') await place.run(stage.replace('DB', database))
    else await stage(place)

    const found = await findings(1, fault)
    expect(found).toMatchObject([
      {
        code,
        object: typeof object === 'string' ? object : expect.stringMatching(object),
        what: expect.stringMatching(says),
      },
    ])
    const { fix } = found[0] as HealthFinding
    if (follow === undefined) {
      expect(fix).toMatch(/;$/)
      await place.run(fix)
    } else {
      expect(fix).toMatch(/^[A-Z].*\.$/)
      await follow(place)
    }
    expect(await findings(0, fault)).toEqual([])
    if (tidy !== undefined) await place.run(tidy)
  })
})
