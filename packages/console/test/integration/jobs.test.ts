/** R10: dead jobs are listed, looked at, tried again and deleted, by who may, written down. */
import { createHoldfast, type Holdfast } from 'holdfast'
import { migrate } from 'holdfast/schema'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { DeadJobList, DeadJobReport } from '../../src/core/wire.ts'
import type { ConsoleOptions } from '../../src/server/console-options.ts'
import {
  act,
  type AuditedConsole,
  auth,
  bearer,
  codeOf,
  type Database,
  openDatabase,
  startAudited,
  startConsole,
  type StartedConsole,
  tokens,
} from '../support/started-console.ts'

let database: Database
let hf: Holdfast<pg.PoolClient>
beforeAll(async () => {
  database = await openDatabase()
  await migrate(database.driver)
  hf = createHoldfast(database.driver)
})
afterAll(() => database.end())

const queueOf = (queue: string) => hf.work<{ to: string }>({ queue })

beforeEach(async () => {
  await database.pool.query('DELETE FROM holdfast.work')
  for (const queue of ['mails', 'reports']) {
    const jobs = queueOf(queue)
    for (const to of ['anna', 'bo']) {
      const uniqueKey = `${queue}-${to}`
      await jobs.enqueue({ payload: { to }, scope: `tenant-${to}`, uniqueKey, maxAttempts: 1 })
    }
    await jobs.fail(await jobs.claim(2), { error: new Error('no such address') })
  }
})

async function started(options: Partial<ConsoleOptions> = {}): Promise<AuditedConsole> {
  return await startAudited({
    driver: database.driver,
    actions: ['job-retry', 'job-delete'],
    ...options,
  })
}

async function read<T>({ get }: StartedConsole, path: string): Promise<T> {
  return (await (await get(path, bearer(tokens.view))).json()) as T
}

const onJob = (job: string): object => ({ job, confirm: job })

test('R10: they are listed, of all queues or of one, a page at a time', async () => {
  const { one } = await started()
  const { jobs, next } = await read<DeadJobList>(one, '/api/jobs')
  expect(next).toBeUndefined()
  expect(jobs.map(({ queue, scope }) => [queue, scope])).toEqual([
    ['mails', 'tenant-anna'],
    ['mails', 'tenant-bo'],
    ['reports', 'tenant-anna'],
    ['reports', 'tenant-bo'],
  ])
  expect(jobs[0]).toMatchObject({ attempts: 1, maxAttempts: 1, error: 'no such address' })
  expect(JSON.stringify(jobs)).not.toContain('payload')
  const first = await read<DeadJobList>(one, '/api/jobs?queue=reports&limit=1')
  const after = encodeURIComponent(first.next ?? '')
  const second = await read<DeadJobList>(one, `/api/jobs?queue=reports&limit=1&after=${after}`)
  expect([...first.jobs, ...second.jobs]).toEqual(jobs.slice(2))
  expect(second.next).toBeUndefined()
  for (const wrong of ['limit=0', 'limit=201', 'after=x']) {
    expect(await codeOf(await one.get(`/api/jobs?${wrong}`, bearer(tokens.view)))).toBe(
      'BAD_REQUEST',
    )
  }
})

test('R10: one is looked at, with its payload; a large one is cut off', async () => {
  const { one } = await started()
  const [first] = (await read<DeadJobList>(one, '/api/jobs')).jobs
  const { job } = await read<DeadJobReport>(one, `/api/job?id=${first?.id}`)
  expect(job).toEqual({ ...first, payload: '{\n  "to": "anna"\n}' })
  const large = queueOf('large')
  await large.enqueue({ payload: { to: 'x'.repeat(100_000) }, maxAttempts: 1 })
  await large.fail(await large.claim())
  const [big] = (await read<DeadJobList>(one, '/api/jobs?queue=large')).jobs
  const report = await read<DeadJobReport>(one, `/api/job?id=${big?.id}`)
  expect(report.job.payload).toHaveLength(65_536)
  const none = '/api/job?id=00000000-0000-4000-8000-000000000000'
  expect(await codeOf(await one.get(none, bearer(tokens.view)))).toBe('NO_SUCH_JOB')
  expect(await codeOf(await one.get('/api/job?id=1', bearer(tokens.view)))).toBe('BAD_REQUEST')
})

test('R10: one is tried again, another deleted, and both are written down', async () => {
  const { one, audit } = await started()
  const [first, second] = (await read<DeadJobList>(one, '/api/jobs?queue=mails')).jobs
  const [retried, deleted] = [first?.id ?? '', second?.id ?? '']
  expect(await (await act(one, 'job-retry', onJob(retried))).json()).toEqual({ done: true })
  expect(await (await act(one, 'job-delete', onJob(deleted))).json()).toEqual({ done: true })
  const claims = await queueOf('mails').claim(5)
  expect(claims.map(({ row }) => row.payload)).toEqual([{ to: 'anna' }])
  expect((await read<DeadJobList>(one, '/api/jobs?queue=mails')).jobs).toEqual([])
  expect(audit.map(({ who, action, target, result }) => [who, action, target, result])).toEqual([
    ['operate token', 'job-retry', retried, 'asked'],
    ['operate token', 'job-retry', retried, 'done'],
    ['operate token', 'job-delete', deleted, 'asked'],
    ['operate token', 'job-delete', deleted, 'done'],
  ])
  for (const action of ['job-retry', 'job-delete']) {
    expect(await codeOf(await act(one, action, onJob(deleted)))).toBe('NO_SUCH_JOB')
  }
})

test('R10: one whose unique key another job has by now stays dead', async () => {
  const { one } = await started()
  const [first] = (await read<DeadJobList>(one, '/api/jobs?queue=mails')).jobs
  const again = { payload: { to: 'anna' }, scope: 'tenant-anna', uniqueKey: 'mails-anna' }
  expect(await queueOf('mails').enqueue(again)).toMatchObject({ added: true })
  const response = await act(one, 'job-retry', onJob(first?.id ?? ''))
  expect([response.status, await codeOf(response)]).toEqual([409, 'JOB_KEY_TAKEN'])
})

test('R10: not by who may only look, not unless it is switched on, not unconfirmed', async () => {
  const { one, audit } = await started({ actions: ['job-retry'] })
  const [first] = (await read<DeadJobList>(one, '/api/jobs')).jobs
  const id = first?.id ?? ''
  expect(await codeOf(await act(one, 'job-retry', onJob(id), tokens.view))).toBe('ROLE_TOO_LOW')
  expect(await codeOf(await act(one, 'job-delete', onJob(id)))).toBe('ACTION_NOT_ALLOWED')
  expect(await codeOf(await act(one, 'job-retry', { job: id, confirm: 'yes' }))).toBe(
    'NOT_CONFIRMED',
  )
  expect(await codeOf(await act(one, 'job-retry', { job: 'x', confirm: 'x' }))).toBe('BAD_REQUEST')
  expect(audit.map(({ target, result, code }) => [target, result, code])).toEqual([
    [id, 'refused', 'ROLE_TOO_LOW'],
    [id, 'refused', 'ACTION_NOT_ALLOWED'],
    [id, 'refused', 'NOT_CONFIRMED'],
  ])
  expect((await read<DeadJobList>(one, '/api/jobs')).jobs).toHaveLength(4)
})

test('R10: without the schema it says so', async () => {
  const empty = await openDatabase()
  const one = await startConsole({ driver: empty.driver, auth })
  expect(await codeOf(await one.get('/api/jobs', bearer(tokens.view)))).toBe('SCHEMA_MISSING')
  await empty.end()
})
