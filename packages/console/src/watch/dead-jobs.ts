import type { Driver } from 'holdfast'
import { createDeadJobs, type DeadJob, type DeadRow } from 'holdfast/claims'
import { Refusal } from '../core/refusals.ts'
import type { DeadJobEntry, DeadJobList, DeadJobReport } from '../core/wire.ts'

/** Larger payloads are cut off: a page is for looking, a program reads them through the library. */
const mostPayload = 65_536

/** Jobs of the ready-made table that had their last attempt: looked at, and what can be done about them. */
export interface DeadJobs {
  list(of: {
    readonly queue: string | undefined
    readonly after: string | undefined
    readonly limit: number
  }): Promise<DeadJobList>
  /** @throws Refusal NO_SUCH_JOB */
  get(id: string): Promise<DeadJobReport>
  /** @throws Refusal NO_SUCH_JOB, JOB_KEY_TAKEN */
  retry(id: string, by: string): Promise<boolean>
  /** @throws Refusal NO_SUCH_JOB */
  delete(id: string, by: string): Promise<boolean>
}

export function watchDeadJobs(driver: Driver<unknown>, schema: string | undefined): DeadJobs {
  const place = schema === undefined ? {} : { schema }
  const all = createDeadJobs(driver, place)
  const change = async (verb: 'retry' | 'delete', id: string, by: string): Promise<boolean> => {
    const { done, taken } = await all[verb](id, { by })
    if (taken.length > 0) throw new Refusal('JOB_KEY_TAKEN')
    if (done.length === 0) throw new Refusal('NO_SUCH_JOB')
    return true
  }
  return {
    async list({ queue, after, limit }) {
      const jobs = queue === undefined ? all : createDeadJobs(driver, { ...place, queue })
      const page = await jobs.list({ limit, ...(after === undefined ? {} : { after }) })
      return {
        jobs: page.rows.map(entryOf),
        ...(page.next === undefined ? {} : { next: page.next }),
      }
    },
    async get(id) {
      const found = await all.get(id)
      if (found === undefined) throw new Refusal('NO_SUCH_JOB')
      const payload = JSON.stringify(found.row.payload, undefined, 2) ?? 'null'
      return { job: { ...entryOf(found), payload: payload.slice(0, mostPayload) } }
    },
    retry: (id, by) => change('retry', id, by),
    delete: (id, by) => change('delete', id, by),
  }
}

function entryOf({ row, attempts, error }: DeadRow<DeadJob>): DeadJobEntry {
  const { id, queue, scope, uniqueKey, priority, maxAttempts, enqueuedAt, runAt } = row
  return {
    id,
    queue,
    scope,
    ...(uniqueKey === undefined ? {} : { uniqueKey }),
    priority,
    ...(attempts === undefined ? {} : { attempts }),
    maxAttempts,
    enqueuedAt: enqueuedAt.toISOString(),
    runAt: runAt.toISOString(),
    ...(error === undefined ? {} : { error }),
  }
}
