/** Flows that call a server in another process: statements say themselves whose they are. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Failure, Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import { explainFailure } from '../../../src/report/explain.ts'
import type { Flow } from '../../../src/run/options.ts'
import { openPort, type SharedPort } from '../../../src/run/connection/shared-port.ts'

const script = fileURLToPath(new URL('../../support/server-process.ts', import.meta.url))

async function start(url: string): Promise<{ child: ChildProcess; origin: string }> {
  const child = fork(script, { env: { ...process.env, DATABASE_URL: url } })
  const [port] = (await once(child, 'message')) as [number]
  return { child, origin: `http://127.0.0.1:${port}` }
}

let url: string
let port: SharedPort
let child: ChildProcess
let origin: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(
      'CREATE TABLE seats (id int PRIMARY KEY); CREATE TABLE bookings (seat int); INSERT INTO seats VALUES (1)',
    ),
  )
  port = await openPort(url)
  ;({ child, origin } = await start(port.url))
})
afterAll(async () => {
  child.disconnect()
  await once(child, 'exit')
  await port.close()
})

const look = (flow: Flow): Promise<Report> =>
  explore({
    url,
    seed: ({ query }) => query('TRUNCATE bookings'),
    flows: { a: flow, b: flow },
    onProgress: () => undefined,
  })

const call =
  (path: string): Flow =>
  async () => ({ status: (await fetch(`${origin}/${path}`)).status })

describe.each(['pg', 'postgres.js', 'application_name'])('a server for all, %s', (way) => {
  test('the race is found, and the lock is seen to help', async () => {
    const race = await look(call(`${way}/none`))
    expect([race.verdict, race.failure?.reproduced]).toEqual(['race', [5, 5]])
    const steps = race.failure?.run.steps ?? []
    expect(new Set(steps.map(({ flow }) => flow))).toEqual(new Set([0, 1]))
    expect(JSON.stringify(steps.map(({ statements }) => statements))).not.toContain('traceparent')
    const free = await look(call(`${way}/lock`))
    expect([free.verdict, free.trouble?.message, free.notes]).toEqual(['race-free', undefined, []])
  })
})

test('without marks nothing is said about every order, but that they are missing', async () => {
  const { verdict, trouble } = await look(call('unmarked/lock'))
  expect(verdict).toBe('vacuous')
  expect(trouble?.message).toMatch(/SELECT FROM seats.* no mark.* traceparent/)
})

test('a race is told alike, whether BEGIN has a mark or not', async () => {
  const told: unknown[] = []
  for (const way of ['pg', 'postgres.js']) {
    const report = await look(call(`${way}/none`))
    const { history, anomaly, fixes } = explainFailure(report, report.failure as Failure)
    const open = history.transactions.map(({ autocommit, end }) => ({ autocommit, end }))
    told.push([anomaly, fixes.map(({ text }) => text.replaceAll(/\(\d+\)/g, '(n)')), open])
  }
  expect(told[1]).toEqual(told[0])
  expect(told[0]).toMatchObject(['check-then-insert', {}, [{ autocommit: false }, {}]])
})

test('a process for each flow needs no marks', async () => {
  const servers = new Map<string, Awaited<ReturnType<typeof start>>>()
  const verdicts: string[] = []
  for (const lock of ['none', 'lock']) {
    const own: Flow = async (context) => {
      const server = servers.get(context.url) ?? (await start(context.url))
      servers.set(context.url, server)
      return { status: (await fetch(`${server.origin}/unmarked/${lock}`)).status }
    }
    verdicts.push((await look(own)).verdict)
  }
  for (const server of servers.values()) server.child.disconnect()
  expect(verdicts).toEqual(['race', 'race-free'])
})
