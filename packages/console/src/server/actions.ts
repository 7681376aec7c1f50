import { channel } from 'node:diagnostics_channel'
import type { Interventions, SessionSeen } from 'holdfast/observe'
import type { Identity } from '../core/identity.ts'
import { Refusal } from '../core/refusals.ts'
import type { Action } from '../core/wire.ts'
import type { DeadJobs } from '../watch/dead-jobs.ts'
import type { Redactor } from '../watch/redactor.ts'
import type { WatchedDatabase } from '../watch/watched-database.ts'
import { isJobId } from './data-routes.ts'
import { explain } from './explain.ts'

/** One line of the audit: told before an action with `asked`, and after it with what came of it. */
export interface AuditEntry {
  readonly at: string
  readonly who: string
  readonly role: string
  readonly action: Action
  readonly database: string
  /**
   * The pid, the name of the schedule, or the id of the job. Of a refused attempt what was asked for; `unknown` if the request
   * did not say.
   */
  readonly target: string
  /** `nothing`: there was nothing to do, as for a schedule that is paused already. */
  readonly result: 'asked' | 'done' | 'nothing' | 'failed' | 'refused'
  /** Of a failure or a refusal. */
  readonly code?: string
}

/** Hears of every action. If it throws when asked, the action is not carried out. */
export type Audit = (entry: AuditEntry) => void | Promise<void>

const audited = channel('holdfast:console.action')

type Body = Readonly<Record<string, unknown>>

/** What an action is about. */
interface Target {
  /** As the person was shown it, and repeats it in `confirm`. */
  readonly shown: string
  /** Its real name, for the audit: that stays with whoever runs the console. */
  find(call: ActionCall): string | Promise<string>
  carryOut(means: Means, target: string, who: string): Promise<boolean>
}

/** What an action is carried out with. */
interface Means {
  readonly sessions: Interventions
  /** Only PostgreSQL has them, and they are asked of nobody else. */
  readonly jobs: DeadJobs | undefined
}

type Act = (body: Body, database: Pick<WatchedDatabase, 'engine'>) => Target

const onSession =
  (end: (sessions: Interventions, session: SessionWish) => Promise<boolean>): Act =>
  (body, { engine }) => {
    const session = sessionIn(body, engine === 'postgres' ? 2 ** 31 - 1 : 2 ** 32 - 1)
    const shown = String(session.pid)
    return { shown, find: () => shown, carryOut: ({ sessions }) => end(sessions, session) }
  }

const onSchedule =
  (carryOut: Target['carryOut']): Act =>
  (body) => {
    const shown = scheduleIn(body)
    return { shown, find: (call) => scheduleShownAs(shown, call), carryOut }
  }

const onJob =
  (change: (jobs: DeadJobs, id: string, who: string) => Promise<boolean>): Act =>
  ({ job }) => {
    if (!isJobId(job)) throw new Refusal('BAD_REQUEST')
    const run: Target['carryOut'] = async ({ jobs }, id, who) => {
      if (jobs === undefined) throw new Refusal('NOT_OFFERED')
      return await change(jobs, id, who)
    }
    return { shown: job, find: () => job, carryOut: run }
  }

const actions: Readonly<Record<Action, Act>> = {
  cancel: onSession((by, { pid, seen }) => by.cancel(pid, seen)),
  terminate: onSession((by, { pid, seen }) => by.terminate(pid, seen)),
  'schedule-pause': onSchedule(({ sessions }, name) => sessions.pauseSchedule(name)),
  'schedule-resume': onSchedule(({ sessions }, name) => sessions.resumeSchedule(name)),
  'schedule-run': onSchedule(async ({ sessions }, name, who) => {
    await sessions.requestTick(name, who)
    return true
  }),
  'job-retry': onJob((jobs, id, who) => jobs.retry(id, who)),
  'job-delete': onJob((jobs, id, who) => jobs.delete(id, who)),
}

/** What can be done on every engine. */
const everywhere: ReadonlySet<Action> = new Set<Action>(['cancel', 'terminate'])

/** All of them, in the order of the table. */
export const allActions: readonly Action[] = Object.keys(actions) as Action[]

/** Who wants what of which database, and who is told. */
export interface ActionCall {
  readonly action: Action
  readonly database: WatchedDatabase
  readonly identity: Identity
  readonly audit: Audit
  readonly redactor: Redactor
}

/** Carries an action out, and says so to whoever keeps the audit. */
export async function carryOut(call: ActionCall, body: Body): Promise<{ readonly done: boolean }> {
  const { action, database, identity } = call
  const { interventions, deadJobs } = database
  if (interventions === undefined) throw new Refusal('ACTION_NOT_ALLOWED')
  if (database.engine !== 'postgres' && !everywhere.has(action)) {
    const refusal = new Refusal('NOT_OFFERED')
    await tellRefused(call, body, refusal)
    throw refusal
  }
  const { shown, find, carryOut: run } = actions[action](body, database)
  if (body['confirm'] !== shown) {
    const refusal = new Refusal('NOT_CONFIRMED')
    await tellRefused(call, body, refusal)
    throw refusal
  }
  const target = await find(call)
  await tell(call, { target, result: 'asked' })
  let done: boolean
  try {
    done = await run({ sessions: interventions, jobs: deadJobs }, target, identity.name)
  } catch (error) {
    const refusal = explain(error)
    await tell(call, { target, result: 'failed', code: refusal.code })
    throw refusal
  }
  await tell(call, { target, result: done ? 'done' : 'nothing' })
  return { done }
}

/** Somebody who is known was not let do it. */
export async function tellRefused(call: ActionCall, body: Body, { code }: Refusal): Promise<void> {
  await tell(call, { target: wantedIn(call, body), result: 'refused', code })
}

/** What an attempt was about, in the words of whoever made it. */
function wantedIn({ action, database }: ActionCall, body: Body): string {
  try {
    return actions[action](body, database).shown
  } catch {
    return 'unknown'
  }
}

async function tell(
  { action, database, identity, audit }: ActionCall,
  outcome: Pick<AuditEntry, 'target' | 'result' | 'code'>,
): Promise<void> {
  const entry: AuditEntry = {
    at: new Date().toISOString(),
    who: identity.name,
    role: identity.role,
    action,
    database: database.name,
    ...outcome,
  }
  if (audited.hasSubscribers) audited.publish(entry)
  await audit(entry)
}

interface SessionWish {
  readonly pid: number
  readonly seen: SessionSeen
}

/** A session alone is not enough: by the time of the click it may be at somebody else's transaction. */
function sessionIn(body: Body, mostPid: number): SessionWish {
  const { pid, startedAt, transactionStartedAt, transactionId } = body
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1 || pid > mostPid) {
    throw new Refusal('BAD_REQUEST')
  }
  if (!isMoment(startedAt)) throw new Refusal('BAD_REQUEST')
  if (transactionStartedAt !== null && !isMoment(transactionStartedAt)) {
    throw new Refusal('BAD_REQUEST')
  }
  if (transactionId === undefined) return { pid, seen: { startedAt, transactionStartedAt } }
  if (typeof transactionId !== 'string' || !/^[\w.]{1,40}$/.test(transactionId)) {
    throw new Refusal('BAD_REQUEST')
  }
  return { pid, seen: { startedAt, transactionStartedAt, transactionId } }
}

function isMoment(value: unknown): value is string {
  return typeof value === 'string' && /^[\d:.TZ-]{1,40}$/.test(value)
}

function scheduleIn({ schedule }: Body): string {
  if (typeof schedule !== 'string' || schedule === '' || schedule.length > 200) {
    throw new Refusal('BAD_REQUEST')
  }
  if (schedule.includes('\0')) throw new Refusal('BAD_REQUEST')
  return schedule
}

/** Whoever sees masks can only say which one is meant. */
async function scheduleShownAs(shown: string, { redactor, database }: ActionCall): Promise<string> {
  if (!redactor.keys) return shown
  const schedules = await database.observer.schedules({ ticks: 1 })
  const [found, ...more] = schedules.filter(({ name }) => redactor.maskOf(name) === shown)
  // Masks of a function of the user's may be the same for several.
  if (found === undefined || more.length > 0) throw new Refusal('NOT_FOUND')
  return found.name
}
