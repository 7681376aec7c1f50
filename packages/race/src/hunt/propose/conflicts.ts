/** Whether two calls can meet in the database, and how likely it is that they get in each other's way. */
import { dependent, overlap } from '../../core/footprint.ts'
import type { Footprint, TouchMode } from '../../core/model.ts'
import type { Profile } from './profile.ts'

/** What two calls have in common. */
export interface Meeting {
  /** `rows`: with the values that were recorded. `tables`: with other values they may. */
  readonly by: 'rows' | 'tables'
  /** The higher, the likelier to be a race. */
  readonly score: number
  readonly reasons: readonly string[]
}

/** Undefined if no order of their statements can differ, whatever their values are. */
export function meetingOf(one: Profile, other: Profile): Meeting | undefined {
  const [some, others] = [one.footprints.map(ofData), other.footprints.map(ofData)]
  const byRows = meet(some, others)
  if (!byRows && !meet(some.map(ofTables), others.map(ofTables))) return undefined
  const { score, reasons } = likelihood(one, other)
  return { by: byRows ? 'rows' : 'tables', score, reasons }
}

function meet(some: readonly Footprint[], others: readonly Footprint[]): boolean {
  return some.some((one) => others.some((other) => dependent(one, other)))
}

/**
 * What it reads and writes. At which moment a snapshot is taken, and what SERIALIZABLE refuses to be careful, is nothing
 * that two calls have in common.
 */
function ofData(footprint: Footprint): Footprint {
  const touches = footprint.touches.filter(({ object, mode }) => object !== '*' || mode !== 'read')
  return { ...footprint, touches, isolation: 'read committed' }
}

function ofTables(footprint: Footprint): Footprint {
  const table = (object: string): string => object.split('#')[0] ?? object
  const { touches, ends } = footprint
  return {
    ...footprint,
    touches: touches.map((touch) => ({ ...touch, object: table(touch.object) })),
    ...(ends && {
      ends: { ...ends, writes: ends.writes.map(table), locks: ends.locks.map(table) },
    }),
  }
}

const moneyLike =
  /amount|balance|price|total|credit|quota|stock|qty|quantity|seat|used|uses|count|limit|remaining|available|points|budget/i

function likelihood(one: Profile, other: Profile): Pick<Meeting, 'score' | 'reasons'> {
  const reasons: string[] = []
  let score = 0
  const add = (points: number, reason: string): void => {
    score += points
    reasons.push(reason)
  }
  if (!writesAny(one) || !writesAny(other)) add(-50, 'one of them only reads')
  const stale = [staleRead(one, other), staleRead(other, one)].filter(
    (found) => found !== undefined,
  )
  const open = stale.find(({ lockedBy }) => lockedBy === undefined)
  const [first] = stale
  if (open) add(100, `reads ${open.object} before it writes, and the other writes it`)
  else if (first) add(10, `both lock ${first.lockedBy} before they read ${first.object}`)
  else add(0, 'neither writes after it has read what the other writes')
  const serializable = [one, other].every(({ footprints }) =>
    footprints.every(
      ({ isolation, touches }) => touches.length === 0 || isolation === 'serializable',
    ),
  )
  if (serializable) add(-40, 'both are SERIALIZABLE')
  if (assignsMoney(one) || assignsMoney(other)) add(20, 'changes what is counted')
  return { score, reasons }
}

const writing: ReadonlySet<TouchMode> = new Set(['append', 'insert'])

function writesOf(profile: Profile): readonly string[] {
  return profile.footprints.flatMap(({ ends, touches }) => [
    ...(ends?.how === 'commit' ? ends.writes : []),
    ...touches.filter(({ mode }) => writing.has(mode)).map(({ object }) => object),
  ])
}

/** Whether it changes anything. */
export function writesAny(profile: Profile): boolean {
  return writesOf(profile).length > 0 || profile.footprints.some(({ opaque }) => opaque)
}

/** A read of what the other writes, before a write of its own; and the lock that both take before. */
function staleRead(
  one: Profile,
  other: Profile,
): { readonly object: string; readonly lockedBy: string | undefined } | undefined {
  const theirs = writesOf(other)
  const locks: string[] = []
  for (const [at, { touches, ends }] of one.footprints.entries()) {
    const read = touches.find(
      ({ mode, object }) =>
        (mode === 'read' || mode === 'lock') &&
        object !== '*' &&
        theirs.some((written) => overlap(tableOf(written), tableOf(object))),
    )
    for (const { mode, object } of touches) {
      if (mode === 'lock' || mode === 'exclusive') locks.push(object)
    }
    const later = one.footprints.slice(at + 1)
    const here = one.footprints.slice(at, at + 1).filter(({ ends: own }) => own?.how === 'commit')
    if (read?.mode === 'read' && [...here, ...later].some(isWrite)) {
      const lockedBy = locks.find((lock) => takes(other, lock))
      return { object: tableOf(read.object), lockedBy }
    }
    // Locks are gone with the transaction.
    if (ends !== undefined) locks.length = 0
  }
  return undefined
}

function isWrite({ ends, touches, opaque }: Footprint): boolean {
  const wrote = ends?.how === 'commit' && ends.writes.length > 0
  return opaque || wrote || touches.some(({ mode }) => writing.has(mode))
}

function takes(other: Profile, lock: string): boolean {
  return other.footprints.some(({ touches }) =>
    touches.some(
      ({ mode, object }) => (mode === 'lock' || mode === 'exclusive') && overlap(object, lock),
    ),
  )
}

function tableOf(object: string): string {
  return object.split('#')[0] ?? object
}

function assignsMoney({ steps }: Profile): boolean {
  return steps.some(
    ({ kind, statements }) => kind === 'write' && statements.some((text) => moneyLike.test(text)),
  )
}
