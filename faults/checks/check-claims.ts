import type { Violation } from '../core/model.ts'
import { grouped, type Operation } from '../history/operations-of.ts'
import { checkFates } from './check-fates.ts'
import { Findings } from './findings.ts'

export interface Task {
  readonly id: string
  readonly status: string
  readonly attempts: number
}

export interface TaskEffect {
  readonly task: string
  readonly token: string
}

/** Claims: whatever is done was done once, by who had the right to it at that moment. */
export function checkClaims(
  operations: readonly Operation[],
  tasks: readonly Task[],
  effects: readonly TaskEffect[],
): Violation[] {
  const findings = new Findings('claims')
  const of = (...names: readonly string[]): Operation[] =>
    operations.filter(({ operation }) => names.includes(operation))
  checkFates(findings, of('enqueue'), new Map(tasks.map(({ id }) => [id, 1])))

  const byTask = grouped(effects, ({ task }) => task)
  for (const { id, status } of tasks) {
    const times = byTask.get(id)?.length ?? 0
    if (times > 1) findings.add('applied_twice', `the work on ${id} was done ${times} times`)
    if (status === 'done' && times === 0) findings.add('torn', `${id} is done without its effect`)
    if (status !== 'done' && times > 0)
      findings.add('torn', `${id} is ${status} and has its effect`)
    if (status === 'dead') findings.add('given_up', `${id} is dead, and every failure was ours`)
  }
  const by = new Set(effects.map(({ task, token }) => `${task}@${token}`))
  for (const [id, attempts] of grouped(of('complete'), (operation) => operation.id)) {
    const [{ outcome, code } = { outcome: 'unknown', code: undefined }] = attempts
    if (outcome === 'ok' && !by.has(id)) findings.add('acknowledged_lost', `complete ${id}`)
    if (outcome === 'refused' && by.has(id))
      findings.add('stale_write', `complete ${id} was refused, and its effect is there`)
    if (outcome === 'failed' && by.has(id))
      findings.add('failed_present', `complete ${id} was ${code}`)
  }
  checkReleased(findings, of('release'), by)
  checkHandedOut(findings, of('claim'))
  return findings.violations
}

/** What was given back is nobody's, and least of all its old owner's. */
function checkReleased(
  findings: Findings,
  released: readonly Operation[],
  by: ReadonlySet<string>,
): void {
  for (const { id = '', outcome } of released) {
    if (outcome === 'ok' && by.has(id)) findings.add('stale_write', `${id} was given back and done`)
  }
}

/** One claim, one owner: no row under one token was handed out twice. */
function checkHandedOut(findings: Findings, claims: readonly Operation[]): void {
  const owners = new Map<string, string>()
  for (const { outcome, answered, attempt } of claims) {
    if (outcome !== 'ok') continue
    for (const name of answered as readonly string[]) {
      const other = owners.get(name)
      if (other !== undefined)
        findings.add('applied_twice', `${name} was given to ${other} and ${attempt}`)
      owners.set(name, attempt)
    }
  }
}
