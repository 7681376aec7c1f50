import { createClaims, createDeadJobs, type DeadOutcome, type DeadRows } from 'holdfast/claims'
import { claimsFlag, claimsOf } from '../settings/claims-file.ts'
import { type Call, type Command, yesFlag } from '../command.ts'
import { numberOf } from '../number-flag.ts'
import { lookOf } from '../render/look.ts'
import { renderDeadJob, renderDeadJobs } from '../render/dead-jobs.ts'
import {
  type Failed,
  failed,
  Misuse,
  notFound,
  done as succeeded,
  unconfirmed,
} from '../failure.ts'

const verbs = ['dead', 'show', 'retry', 'delete'] as const
type Verb = (typeof verbs)[number]

export const jobs: Command = {
  name: 'jobs',
  about: 'Dead jobs: list them, look at one, retry or delete it',
  needsDatabase: true,
  args: [
    { name: 'verb', words: verbs, about: 'What to do; dead lists them', optional: true },
    { name: 'job', about: 'Which job, by its id; or all, to retry or delete', optional: true },
  ],
  flags: {
    queue: { type: 'string', value: '<queue>', about: 'Only jobs of this queue' },
    table: {
      type: 'string',
      value: '<table>',
      about: 'Rows of this table of yours instead, one of --claims',
    },
    claims: claimsFlag,
    limit: { type: 'string', value: '<n>', about: 'At most so many; default: 50' },
    after: { type: 'string', value: '<next>', about: 'The page behind this one, as the list says' },
    yes: yesFlag,
  },
  async run(call) {
    const { verb = 'dead', job } = call.args as { verb?: Verb; job?: string }
    if (verb !== 'dead' && job === undefined) throw new Misuse(`<job> is needed to ${verb} a job.`)
    const { queue, table } = call.flags
    if (table === undefined && job !== undefined && job !== 'all' && !uuid.test(job)) {
      throw new Misuse('<job> is the id of a job, as `holdfast jobs` lists it.')
    }
    if (table !== undefined && queue !== undefined) {
      throw new Misuse('--queue is for jobs, and --table for rows of a table of yours.')
    }
    const tables = await claimsOf(call)
    return await call.database(async (driver) => {
      const dead = deadOf(call, tables, driver)
      if (verb === 'dead') return await list(call, dead)
      if (verb === 'show') return await show(call, dead, job as string)
      return await change(call, dead, verb, job as string)
    })
  },
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

type Dead = DeadRows<object>

function deadOf(
  { flags, schema }: Call,
  tables: Awaited<ReturnType<typeof claimsOf>>,
  driver: Parameters<Parameters<Call['database']>[0]>[0],
): Dead {
  const { queue, table: wanted } = flags
  if (typeof wanted !== 'string') {
    return createDeadJobs(driver, {
      ...(typeof queue === 'string' ? { queue } : {}),
      ...(schema === undefined ? {} : { schema }),
    })
  }
  const found = tables.find(({ table }) =>
    typeof table === 'string'
      ? table === wanted
      : wanted === table.table || wanted === `${table.schema}.${table.table}`,
  )
  if (found === undefined) throw new Misuse('--table is none of the tables of --claims.')
  return createClaims<unknown, object>(driver as never, found).dead
}

async function list({ flags, around, printPainted }: Call, dead: Dead): Promise<number> {
  const { after } = flags
  const limit = numberOf(flags['limit'], 'limit') ?? 50
  const page = await dead.list({ limit, ...(typeof after === 'string' ? { after } : {}) })
  const lines =
    page.rows.length === 0
      ? [`No ${typeof flags['queue'] === 'string' ? 'job of this queue' : 'job'} is dead.`]
      : renderDeadJobs(page, lookOf(around.terminal))
  printPainted({ jobs: page.rows, next: page.next }, `${lines.join('\n')}\n`)
  return succeeded
}

/** A key of several columns is written with commas. */
const keyOf = (job: string): string[] => job.split(',')

const notThere = (): Failed =>
  notFound('There is no dead job with this id.', 'Run `holdfast jobs`, which lists them.')

async function show(call: Call, dead: Dead, job: string): Promise<number> {
  const found = await dead.get(keyOf(job))
  if (found === undefined) throw notThere()
  const lines = renderDeadJob(found, lookOf(call.around.terminal))
  call.printPainted({ job: found, found: true }, `${lines.join('\n')}\n`)
  return succeeded
}

async function change(
  call: Call,
  dead: Dead,
  verb: 'retry' | 'delete',
  job: string,
): Promise<number> {
  const limit = numberOf(call.flags['limit'], 'limit') ?? 50
  const keys =
    job === 'all' ? (await dead.list({ limit })).rows.map(({ key }) => key) : [keyOf(job)]
  if (call.flags['yes'] !== true) {
    if (job !== 'all' && (await dead.get(keyOf(job))) === undefined) throw notThere()
    const would = verb === 'retry' ? 'let workers try again' : 'delete for good'
    call.print(
      { verb, jobs: keys, done: [] },
      `Would ${would}: ${keys.length} dead ${keys.length === 1 ? 'job' : 'jobs'}.\nNothing was done: add --yes.\n`,
    )
    return unconfirmed
  }
  const outcome: DeadOutcome = await dead[verb](keys, { by: `holdfast jobs ${verb}` })
  const { done, missing, taken } = outcome
  if (job !== 'all' && missing.length > 0) throw notThere()
  const told = [
    `${verb === 'retry' ? 'Can be claimed again' : 'Deleted'}: ${done.length}.`,
    ...(missing.length === 0 ? [] : [`Not dead, or not there: ${missing.length}.`]),
    ...(taken.length === 0
      ? []
      : [`Left dead, because another job has their unique key: ${taken.length}.`]),
  ]
  call.print({ verb, ...outcome }, `${told.join(' ')}\n`)
  return done.length === keys.length ? succeeded : failed
}
