import type { Violation } from '../core/model.ts'
import { grouped, type Operation } from '../history/operations-of.ts'
import { checkKeys } from './check-keys.ts'
import type { Event, Sequential } from './check-linearizable.ts'
import { Findings } from './findings.ts'

export interface HookEffect {
  readonly hook: string
  readonly id: string
}

interface Received {
  readonly result: string
  readonly replayed: boolean
}

/** Once: one effect per key, and everybody is told the result of that one. */
export function checkOnce(
  operations: readonly Operation[],
  effects: readonly HookEffect[],
): Violation[] {
  const findings = new Findings('once')
  const left = grouped(effects, ({ hook }) => hook)
  const asked = grouped(operations, ({ key }) => key)
  for (const [hook, some] of left) {
    if (some.length > 1) findings.add('applied_twice', `${hook} has ${some.length} effects`)
    if (!asked.has(hook)) findings.add('unasked', `${hook} has an effect; nobody asked for it`)
  }
  for (const [hook, attempts] of asked) checkHook(findings, hook, attempts, left.get(hook) ?? [])
  checkKeys(findings, eventsOf(asked, left), memory)
  return findings.violations
}

function checkHook(
  findings: Findings,
  hook: string,
  attempts: readonly Operation[],
  [effect]: readonly HookEffect[],
): void {
  const told = attempts.filter(({ outcome }) => outcome === 'ok')
  if (told.length > 0 && effect === undefined) {
    findings.add('acknowledged_lost', `${hook} was acknowledged to ${told[0]?.attempt}`)
  }
  for (const { attempt, answered } of told) {
    const { result } = answered as Received
    if (effect !== undefined && result !== effect.id) {
      findings.add(
        'replay_differs',
        `${attempt} was told ${result} of ${hook}, which is ${effect.id}`,
      )
    }
  }
  const ran = told.filter(({ answered }) => !(answered as Received).replayed)
  if (ran.length > 1) findings.add('told_twice', `${hook} was new to ${ran.length} callers`)
  if (effect !== undefined && attempts.every(({ outcome }) => outcome === 'failed')) {
    const codes = attempts.map(({ code }) => code).join(', ')
    findings.add('failed_present', `${hook} is there, and was ${codes}`)
  }
}

/**
 * Only the first can be new. It may also be told that it is a replay: its connection was lost and the
 * library asked again. Of an unknown one the table says whether it may have been the first.
 */
function eventsOf(
  asked: ReadonlyMap<string, readonly Operation[]>,
  left: ReadonlyMap<string, readonly HookEffect[]>,
): Map<string, Event<Received>[]> {
  return new Map(
    [...asked].map(([hook, attempts]) => [
      hook,
      attempts.flatMap(({ began, ended, outcome, answered, attempt }) => {
        const name = `${attempt} ${outcome}`
        if (outcome === 'ok') return [{ began, ended, step: answered as Received, name }]
        const effect = left.get(hook)?.[0]
        if (outcome !== 'unknown' || effect === undefined) return []
        const step = { result: effect.id, replayed: false }
        return [{ began, ended, step, optional: true, name }]
      }),
    ]),
  )
}

const memory: Sequential<string, Received> = {
  initial: '',
  next(known, { result, replayed }) {
    if (known === '') return result
    return replayed && known === result ? known : undefined
  },
  nameOf: (known) => known,
}
