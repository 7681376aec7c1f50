import { grouped, type Operation } from '../history/operations-of.ts'
import type { LedgerAnswer, LedgerAsked, LineAnswer } from '../workloads/ledger-answer.ts'
import type { Findings } from './findings.ts'

/** One movement of the ledger, with whose it is. */
export interface Movement {
  readonly account: string
  readonly book: string
  readonly key: string
  readonly seq: number
  readonly kind: number
  readonly credit: number
  readonly debit: number
  readonly hold: number
  readonly credited: number
  readonly debited: number
  readonly held: number
  readonly allowance: number
  readonly operationId: string
  readonly holdId: string | null
}

/** 4 settles and 5 releases a hold; 6 is a hold that expired, 9 a grant that did. */
export const kinds = { settle: 4, release: 5, expiry: 6, lapse: 9 } as const
const endings: readonly number[] = [kinds.settle, kinds.release, kinds.expiry, kinds.lapse]

/** No movement left less than nothing, and each follows from the one before. */
export function checkMovements(findings: Findings, movements: readonly Movement[]): void {
  for (const [account, some] of grouped(movements, (movement) => movement.account)) {
    let before = { seq: 0, credited: 0, debited: 0, held: 0 }
    for (const movement of some.toSorted((a, b) => a.seq - b.seq)) {
      const { seq, credit, debit, hold, credited, debited, held, book, key } = movement
      const name = `${book} ${key}, movement ${seq}`
      if (availableIn(movement) < 0) {
        findings.add('bound_crossed', `${name} left ${availableIn(movement)} available`)
      }
      const follows =
        seq === before.seq + 1 &&
        credited === before.credited + credit &&
        debited === before.debited + debit &&
        held === before.held + hold
      if (!follows)
        findings.add('chain_broken', `${name} of ${account} does not follow ${before.seq}`)
      before = { seq, credited, debited, held }
    }
  }
}

/** Operations with an id: what was asked, what was answered and what was booked agree. */
export function checkOperations(
  findings: Findings,
  operations: readonly Operation[],
  movements: readonly Movement[],
): void {
  const booked = grouped(
    movements.filter(({ kind }) => !endings.includes(kind)),
    ({ operationId }) => operationId,
  )
  const byId = grouped(operations, ({ id }) => id)
  for (const [id, attempts] of byId) checkOne(findings, id, attempts, booked.get(id) ?? [])
  for (const [id, [movement]] of booked) {
    if (!byId.has(id)) findings.add('unasked', `${id} was booked on ${movement?.key}; nobody asked`)
  }
  checkOrder(findings, operations)
  checkRefusals(findings, operations, movements)
}

function checkOne(
  findings: Findings,
  id: string,
  attempts: readonly Operation[],
  booked: readonly Movement[],
): void {
  const [first] = attempts as [Operation, ...Operation[]]
  const { lines } = first.asked as LedgerAsked
  const name = `${first.operation} ${id} on ${first.key}`
  const accepted = attempts.filter(({ outcome }) => outcome === 'ok')
  const has = (outcome: Operation['outcome']): boolean =>
    attempts.some((attempt) => attempt.outcome === outcome)
  if (booked.length > lines.length) {
    findings.add(
      'applied_twice',
      `${name} has ${booked.length} movements for ${lines.length} lines`,
    )
  } else if (booked.length > 0 && booked.length < lines.length) {
    findings.add('torn', `${name} has ${booked.length} movements for ${lines.length} lines`)
  }
  if (accepted.length > 0 && booked.length === 0) {
    findings.add('acknowledged_lost', `${name} was acknowledged and has no movement`)
  }
  if (booked.length > 0 && accepted.length === 0 && !has('unknown')) {
    const rule = has('refused') ? 'refused_present' : 'failed_present'
    const ends = attempts.map(({ code, outcome }) => code ?? outcome).join(', ')
    findings.add(rule, `${name} was booked, and was ${ends}`)
  }
  for (const movement of booked) {
    const line = lines.find(({ book, key }) => book === movement.book && key === movement.key)
    if (
      line === undefined ||
      line.amount !== Math.abs(movement.credit + movement.debit + movement.hold)
    ) {
      findings.add('answer_differs', `${name} booked something else on ${movement.key}`)
    }
  }
  checkReplays(findings, name, attempts, accepted, booked)
}

/** Whoever asks again is told the same, and what he is told is what was booked. */
function checkReplays(
  findings: Findings,
  name: string,
  attempts: readonly Operation[],
  accepted: readonly Operation[],
  booked: readonly Movement[],
): void {
  const [first] = accepted
  if (first === undefined) return
  const told = textOf(first)
  for (const other of accepted) {
    if (textOf(other) !== told) {
      findings.add('replay_differs', `${name} was answered ${told}, then ${textOf(other)}`)
    }
  }
  const applied = accepted.filter(({ answered }) => !(answered as LedgerAnswer).replayed)
  if (applied.length > 1) findings.add('replay_differs', `${name} was new ${applied.length} times`)
  for (const later of attempts) {
    if (later.outcome === 'refused' && later.began > Math.min(...accepted.map((a) => a.ended))) {
      findings.add('replay_differs', `${name} was accepted and later refused`)
    }
  }
  for (const line of (first.answered as LedgerAnswer).lines) {
    const movement = booked.find(({ key }) => key === line.key)
    if (movement !== undefined && !agrees(line, movement)) {
      findings.add(
        'answer_differs',
        `${name} was told of movement ${line.sequence} with other sums`,
      )
    }
  }
}

function agrees(line: LineAnswer, movement: Movement): boolean {
  return (
    line.sequence === movement.seq &&
    line.credited === movement.credited &&
    line.debited === movement.debited &&
    line.held === movement.held
  )
}

function textOf({ answered }: Operation): string {
  const { lines } = answered as LedgerAnswer
  return lines
    .map((line) => `${line.key}:${line.sequence}:${line.credited}:${line.debited}:${line.held}`)
    .join(' ')
}

/**
 * The ledger numbers what it did, so its order need not be searched for: whatever had ended before
 * something else began has the lower number.
 */
function checkOrder(findings: Findings, operations: readonly Operation[]): void {
  const lines = operations
    .filter(
      ({ outcome, answered }) => outcome === 'ok' && (answered as LedgerAnswer).replayed === false,
    )
    .flatMap((operation) =>
      (operation.answered as LedgerAnswer).lines.map(({ key, sequence }) => ({
        operation,
        sequence,
        // Every window of a key is an account of its own; only those of one account are numbered.
        account: isWindowed(operation) ? undefined : `${bookOf(operation)} ${key}`,
      })),
    )
  for (const [account, some] of grouped(lines, (line) => line.account)) {
    const byEnd = some.toSorted((a, b) => a.operation.ended - b.operation.ended)
    let [highest, ended] = [0, 0]
    for (const { operation, sequence } of some.toSorted(
      (a, b) => a.operation.began - b.operation.began,
    )) {
      for (; (byEnd[ended]?.operation.ended ?? Infinity) < operation.began; ended += 1) {
        highest = Math.max(highest, byEnd[ended]?.sequence ?? 0)
      }
      if (sequence <= highest) {
        findings.add(
          'not_linearizable',
          `${operation.operation} ${operation.id} is movement ${sequence} of ${account}, and began after ${highest} had ended`,
        )
      }
    }
  }
}

/**
 * A refusal for want of room is right if there was too little at some moment between its beginning and its
 * end. The sums it tells are those of that moment or of a later one: it is decided without a lock, and they
 * are read afterwards.
 */
function checkRefusals(
  findings: Findings,
  operations: readonly Operation[],
  movements: readonly Movement[],
): void {
  const byKey = grouped(movements, ({ book, key }) => `${book} ${key}`)
  const accepted = grouped(
    operations.filter(({ outcome }) => outcome === 'ok'),
    bookOf,
  )
  for (const operation of operations) {
    const { outcome, answered, asked, id } = operation
    if (outcome !== 'refused' || (answered as LedgerAnswer).reason !== 'insufficient') continue
    const book = bookOf(operation)
    for (const line of (answered as LedgerAnswer).lines) {
      const { key, sequence, allowance } = line
      const name = `${operation.operation} ${id} on ${key}`
      const own = byKey.get(`${book} ${key}`) ?? []
      const told = own.filter((movement) => agrees(line, movement))
      const wanted = (asked as LedgerAsked).lines.find((each) => each.key === key)?.amount ?? 0
      if (sequence > 0 && told.length === 0) {
        // It may have read what was visible for a moment and was lost with the primary, if that left too little.
        if (line.refusal === 'insufficient' && availableIn(line) < wanted) {
          findings.add('refused_for_lost', `${name} was refused by sums that are not there`)
        } else findings.add('answer_differs', `${name} was refused by sums that never were`)
        continue
      }
      const accounts = new Set(told.map(({ account }) => account))
      // A refusal that is repeated was decided at an earlier time.
      const since =
        isWindowed(operation) || (answered as LedgerAnswer).replayed
          ? 0
          : knownBefore(operation, key, accepted.get(book) ?? [])
      const states = own.filter(
        ({ account, seq }) => accounts.has(account) && seq >= since && seq <= sequence,
      )
      const short =
        (since === 0 && wanted > allowance) || states.some((state) => availableIn(state) < wanted)
      if (line.refusal === 'insufficient' && !short) {
        findings.add('refused_wrongly', `${name} asked ${wanted}, and at no moment was there less`)
      }
    }
  }
}

/** The last movement that somebody had been told of before this one began. */
function knownBefore(
  { began }: Operation,
  key: string | undefined,
  accepted: readonly Operation[],
): number {
  const known = accepted
    .filter(({ ended }) => ended < began)
    .flatMap(({ answered }) => (answered as LedgerAnswer).lines)
    .filter((line) => line.key === key)
  return Math.max(0, ...known.map(({ sequence }) => sequence))
}

function availableIn({ credited, debited, held, allowance }: Movement | LineAnswer): number {
  return credited - debited - held + allowance
}

function bookOf({ asked }: Operation): string {
  return (asked as LedgerAsked).lines[0]?.book ?? ''
}

function isWindowed(operation: Operation): boolean {
  return bookOf(operation).endsWith('-a-minute')
}
