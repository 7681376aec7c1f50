import type { Violation } from '../core/model.ts'
import { grouped, type Operation } from '../history/operations-of.ts'
import { checkFates } from './check-fates.ts'
import { checkKeys } from './check-keys.ts'
import type { Event, Sequential } from './check-linearizable.ts'
import { Findings } from './findings.ts'

/** One write under a lease. */
export interface FencedWrite {
  /** In the order in which they were written. */
  readonly seq: number
  readonly lease: string
  readonly token: number
  readonly id: string
}

/** Leases: tokens only grow, and nobody writes with one that is no longer the latest. */
export function checkLeases(
  operations: readonly Operation[],
  writes: readonly FencedWrite[],
): Violation[] {
  const findings = new Findings('leases')
  for (const [lease, some] of grouped(writes, (write) => write.lease)) {
    let highest = 0
    for (const { token, id } of some.toSorted((a, b) => a.seq - b.seq)) {
      if (token < highest) {
        findings.add('stale_write', `${id} wrote to ${lease} with token ${token} after ${highest}`)
      }
      highest = Math.max(highest, token)
    }
  }
  const times = new Map([...grouped(writes, ({ id }) => id)].map(([id, some]) => [id, some.length]))
  const of = (name: string): Operation[] => operations.filter(({ operation }) => operation === name)
  checkFates(findings, of('write'), times)
  checkTokens(findings, of('acquire'))
  checkKeys(findings, eventsOf(operations, times), latestToken)
  return findings.violations
}

/** Each acquisition has a token of its own, higher than all that were known before it began. */
function checkTokens(findings: Findings, acquisitions: readonly Operation[]): void {
  const got = acquisitions.filter(({ outcome }) => outcome === 'ok')
  for (const [lease, some] of grouped(got, ({ key }) => key)) {
    for (const later of some) {
      const stale = some.find(
        (other) =>
          other !== later &&
          (tokenOf(other) === tokenOf(later) ||
            (other.ended < later.began && tokenOf(other) > tokenOf(later))),
      )
      if (stale !== undefined) {
        findings.add(
          'token_reused',
          `${later.attempt} got token ${tokenOf(later)} of ${lease}, ${stale.attempt} had ${tokenOf(stale)} before`,
        )
      }
    }
  }
}

interface Held {
  readonly kind: 'acquire' | 'write'
  readonly token: number
}

/** What was refused says nothing about the order: a lease can be over at any moment. */
function eventsOf(
  operations: readonly Operation[],
  times: ReadonlyMap<string, number>,
): Map<string, Event<Held>[]> {
  const events = operations.flatMap((operation) => {
    const { key, began, ended, outcome, id = '', attempt } = operation
    const kind = operation.operation
    if (kind !== 'acquire' && kind !== 'write') return []
    if (outcome !== 'ok' && !(outcome === 'unknown' && kind === 'write' && times.has(id))) return []
    const step: Held = { kind, token: tokenOf(operation) }
    const optional = outcome === 'unknown'
    return [
      { key, event: { began, ended, step, optional, name: `${attempt} ${kind} ${step.token}` } },
    ]
  })
  return new Map(
    [...grouped(events, ({ key }) => key)].map(([key, some]) => [
      key,
      some.map(({ event }) => event),
    ]),
  )
}

const latestToken: Sequential<number, Held> = {
  initial: 0,
  next(latest, { kind, token }) {
    if (kind === 'acquire') return token > latest ? token : undefined
    return token === latest ? latest : undefined
  },
  nameOf: String,
}

/** The token that an operation was about, or got. */
export function tokenOf({ asked, answered }: Operation): number {
  const { token } = (asked ?? answered) as { readonly token: string }
  return Number(token)
}
