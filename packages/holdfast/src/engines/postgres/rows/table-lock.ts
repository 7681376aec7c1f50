import type { TableName } from '../../../core/table-name.ts'
import type { TableLockMode } from '../../../rows/engine.ts'
import { tableText } from '../sql/identifier.ts'

/** For each mode: its name in pg_locks, and the modes that stand in its way. */
const modes: Readonly<
  Record<TableLockMode, { readonly name: string; readonly conflicts: readonly TableLockMode[] }>
> = {
  'access share': { name: 'AccessShareLock', conflicts: ['access exclusive'] },
  'row share': { name: 'RowShareLock', conflicts: ['exclusive', 'access exclusive'] },
  'row exclusive': {
    name: 'RowExclusiveLock',
    conflicts: ['share', 'share row exclusive', 'exclusive', 'access exclusive'],
  },
  'share update exclusive': {
    name: 'ShareUpdateExclusiveLock',
    conflicts: [
      'share update exclusive',
      'share',
      'share row exclusive',
      'exclusive',
      'access exclusive',
    ],
  },
  share: {
    name: 'ShareLock',
    conflicts: [
      'row exclusive',
      'share update exclusive',
      'share row exclusive',
      'exclusive',
      'access exclusive',
    ],
  },
  'share row exclusive': {
    name: 'ShareRowExclusiveLock',
    conflicts: [
      'row exclusive',
      'share update exclusive',
      'share',
      'share row exclusive',
      'exclusive',
      'access exclusive',
    ],
  },
  exclusive: {
    name: 'ExclusiveLock',
    conflicts: [
      'row share',
      'row exclusive',
      'share update exclusive',
      'share',
      'share row exclusive',
      'exclusive',
      'access exclusive',
    ],
  },
  'access exclusive': {
    name: 'AccessExclusiveLock',
    conflicts: [
      'access share',
      'row share',
      'row exclusive',
      'share update exclusive',
      'share',
      'share row exclusive',
      'exclusive',
      'access exclusive',
    ],
  },
}

/** Names in pg_locks of the modes that a request for this mode has to wait for. */
export function conflictingModes(mode: TableLockMode): readonly string[] {
  return modes[mode].conflicts.map((conflict) => modes[conflict].name)
}

const conflicts = new Map(
  Object.values(modes).map((mode) => [
    mode.name,
    new Set(mode.conflicts.map((conflict) => modes[conflict].name)),
  ]),
)

/** Whether two modes, by their names in pg_locks, exclude each other; all kinds of locks have these. */
export function conflictsWith(one: string, other: string): boolean {
  return conflicts.get(one)?.has(other) === true
}

/** A utility statement: it takes no snapshot, so at REPEATABLE READ it may come before one. */
export function lockTableText(table: TableName, mode: TableLockMode, nowait: boolean): string {
  return `LOCK TABLE ${tableText(table)} IN ${mode.toUpperCase()} MODE${nowait ? ' NOWAIT' : ''}`
}
