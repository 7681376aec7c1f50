/** The staged incident, as the console tells it: whole, by name, within two seconds. */
import { migrate } from 'holdfast/schema'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTime } from '../../../holdfast/test/support/in-time.ts'
import {
  cast,
  stagedNotes,
  stagedWaits,
  stageIncident,
} from '../../../holdfast/test/support/staged-incident.ts'
import type { TreeEvent } from '../../src/core/wire.ts'
import { openEvents } from '../support/events-of.ts'
import { auth, type Database, openDatabase, startConsole } from '../support/started-console.ts'

let database: Database
beforeAll(async () => {
  database = await openDatabase()
  await migrate(database.driver)
  const notes = JSON.stringify(stagedNotes())
  await database.pool.query("SELECT holdfast.note_locks($1, '[]')", [notes])
})
afterAll(() => database.end())

test('twelve sessions in one tree reach who listens', async () => {
  const one = await startConsole({ driver: database.driver, auth })
  const events = await openEvents(one, '/api/events')
  await events.next()
  const incident = await stageIncident(database.url)
  try {
    let tree: TreeEvent
    do tree = JSON.parse((await events.next())?.data ?? '')
    while (tree.sessions.filter(({ waitsFor }) => waitsFor !== undefined).length < 11)
    inTime(performance.now() - incident.happenedAt, 2_000)

    expect(tree.roots.map((pid) => incident.roleOf(pid))).toEqual(['billing'])
    const seen = new Set(tree.sessions.map(({ pid }) => incident.roleOf(pid)))
    expect(seen).toEqual(new Set(cast))
    for (const { pid, waitsFor } of tree.sessions) {
      const role = incident.roleOf(pid)
      if (role === undefined || role === 'billing') continue
      expect([role, waitsFor?.name]).toEqual([role, stagedWaits[role].waitsFor])
    }
    const hottest = tree.hotKeys.map(({ name, waiting }) => [name, waiting])
    expect(hottest).toContainEqual(['cart:7', 2])
  } finally {
    await events.close()
    await incident.end()
  }
})
