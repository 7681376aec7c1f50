import { channel } from 'node:diagnostics_channel'
import type { Interventions } from 'holdfast/observe'
import type { Identity } from '../core/identity.ts'
import { Refusal } from '../core/refusals.ts'
import type { Action } from '../core/wire.ts'
import type { WatchedDatabase } from '../watch/watched-database.ts'
import { explain } from './explain.ts'

/** One line of the audit: told before an action with `asked`, and after it with what came of it. */
export interface AuditEntry {
  readonly at: string
  readonly who: string
  readonly role: string
  readonly action: Action
  readonly database: string
  /** The pid, or the name of the schedule. */
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

interface Target {
  readonly target: string
  carryOut(interventions: Interventions): Promise<boolean>
}

const actions: Readonly<Record<Action, (body: Body, who: string) => Target>> = {
  cancel: (body) => {
    const { pid, seen } = sessionIn(body)
    return { target: String(pid), carryOut: (by) => by.cancel(pid, seen) }
  },
  terminate: (body) => {
    const { pid, seen } = sessionIn(body)
    return { target: String(pid), carryOut: (by) => by.terminate(pid, seen) }
  },
  'schedule-pause': (body) => {
    const target = scheduleIn(body)
    return { target, carryOut: (by) => by.pauseSchedule(target) }
  },
  'schedule-resume': (body) => {
    const target = scheduleIn(body)
    return { target, carryOut: (by) => by.resumeSchedule(target) }
  },
  'schedule-run': (body, who) => {
    const target = scheduleIn(body)
    return {
      target,
      carryOut: async (by) => {
        await by.requestTick(target, who)
        return true
      },
    }
  },
}

/** The action of a path, if it is one. */
export function actionOf(name: string): Action | undefined {
  return Object.hasOwn(actions, name) ? (name as Action) : undefined
}

/** All of them, in the order of the table. */
export const allActions: readonly Action[] = Object.keys(actions) as Action[]

/** Who wants what of which database, and who is told. */
export interface ActionCall {
  readonly action: Action
  readonly database: WatchedDatabase
  readonly identity: Identity
  readonly audit: Audit
}

/** Carries an action out, and says so to whoever keeps the audit. */
export async function carryOut(call: ActionCall, body: Body): Promise<{ readonly done: boolean }> {
  const { action, database, identity } = call
  const { interventions } = database
  if (interventions === undefined) throw new Refusal('ACTION_NOT_ALLOWED')
  const { target, carryOut: run } = actions[action](body, identity.name)
  if (body['confirm'] !== target) throw new Refusal('NOT_CONFIRMED')
  await tell(call, { target, result: 'asked' })
  let done: boolean
  try {
    done = await run(interventions)
  } catch (error) {
    const refusal = explain(error)
    await tell(call, { target, result: 'failed', code: refusal.code })
    throw refusal
  }
  await tell(call, { target, result: done ? 'done' : 'nothing' })
  return { done }
}

/** Somebody who is known was not let do it. */
export async function tellRefused(call: ActionCall, { code }: Refusal): Promise<void> {
  await tell(call, { target: '', result: 'refused', code })
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

function sessionIn({ pid, startedAt }: Body): { pid: number; seen: { startedAt?: string } } {
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1 || pid > 2 ** 31 - 1) {
    throw new Refusal('BAD_REQUEST')
  }
  if (startedAt === undefined) return { pid, seen: {} }
  if (typeof startedAt !== 'string' || startedAt.length > 40) throw new Refusal('BAD_REQUEST')
  return { pid, seen: { startedAt } }
}

function scheduleIn({ schedule }: Body): string {
  if (typeof schedule !== 'string' || schedule === '' || schedule.length > 200) {
    throw new Refusal('BAD_REQUEST')
  }
  if (schedule.includes('\0')) throw new Refusal('BAD_REQUEST')
  return schedule
}
