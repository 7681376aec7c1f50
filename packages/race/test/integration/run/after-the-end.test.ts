/** Flows that return before their work is done, or that leave something behind. */
import { setTimeout as pause } from 'node:timers/promises'
import { withClient } from '@holdfast/testkit'
import type { Pool, PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query('CREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL)'),
  )
})

const look = (flow: Flow, other: Flow = flow): Promise<Report> =>
  explore({
    url,
    seed: ({ query }) => query('TRUNCATE counter; INSERT INTO counter VALUES (1, 0)'),
    flows: { a: flow, b: other },
    onProgress: () => undefined,
  })

const count = async (on: Pool | PoolClient, between = async () => undefined): Promise<void> => {
  const { rows } = await on.query('SELECT n FROM counter WHERE id = 1')
  await between()
  await on.query('UPDATE counter SET n = $1 WHERE id = 1', [rows[0].n + 1])
}

/** What ends a process if nobody listens: vitest counts such errors as failures of the run. */
async function rejectionsDuring(work: () => Promise<unknown>): Promise<unknown[]> {
  const rejections: unknown[] = []
  const listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', (reason) => rejections.push(reason))
  try {
    await work()
    await pause(200)
  } finally {
    process.removeAllListeners('unhandledRejection')
    for (const listener of listeners) process.on('unhandledRejection', listener)
  }
  return rejections
}

describe('work that nobody waits for', () => {
  test('is part of its flow, if it goes on at once', async () => {
    const flow: Flow = async ({ pool }) => {
      void count(pool)
      return 'accepted'
    }
    let report: Report | undefined
    const rejections = await rejectionsDuring(async () => {
      report = await look(flow)
    })
    expect(report?.verdict).toBe('race')
    expect(rejections).toEqual([])
  })

  test('and is cut off without an error that would end the process, if it does not', async () => {
    const flow: Flow = async ({ pool }) => {
      void (async () => {
        const client = await pool.connect()
        await count(client, () => pause(150))
        client.release()
      })()
      return 'accepted'
    }
    let report: Report | undefined
    const rejections = await rejectionsDuring(async () => {
      report = await look(flow)
    })
    expect(rejections).toEqual([])
    expect(report?.verdict).not.toBe('race-free')
  })

  test('and comes in the runs of others is told as such, and not blamed on the seed', async () => {
    const flow: Flow = async ({ pool }) => {
      setTimeout(() => void count(pool).catch(() => undefined), 30)
      return 'accepted'
    }
    const { verdict, trouble } = await look(flow)
    expect([verdict, trouble?.kind]).toEqual(['inconclusive', 'outlives-its-end'])
    expect(trouble?.message).toMatch(/^Statements of [ab] came after it had ended/)
  })
})

test('a lock of the session that was not released is called so', async () => {
  const flow: Flow = async ({ pool }) => {
    const client = await pool.connect()
    await client.query('SELECT pg_advisory_lock(7)')
    await count(client)
    client.release()
  }
  const { trouble } = await look(flow)
  expect(trouble?.kind).toBe('hung-flow')
  expect(trouble?.message).toBe(
    'b waits for a lock that a still holds although it has ended: an advisory lock of its session, as pg_advisory_lock() takes it. Call pg_advisory_unlock() before the client is released, or take pg_advisory_xact_lock().',
  )
})

test('a transaction that was left open still is', async () => {
  const flow: Flow = async ({ pool }) => {
    const client = await pool.connect()
    await client.query('BEGIN')
    await count(client)
  }
  const { trouble } = await look(flow)
  expect(trouble?.message).toMatch(/its transaction was left open\. Commit, roll back/)
})
