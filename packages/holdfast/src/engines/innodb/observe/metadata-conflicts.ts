/** Locks of MySQL on definitions, from the weakest to the strongest. */
const types = [
  'SHARED',
  'SHARED_HIGH_PRIO',
  'SHARED_READ',
  'SHARED_WRITE',
  'SHARED_WRITE_LOW_PRIO',
  'SHARED_UPGRADABLE',
  'SHARED_READ_ONLY',
  'SHARED_NO_WRITE',
  'SHARED_NO_READ_WRITE',
  'EXCLUSIVE',
] as const

/** For each that is wanted: with which that others hold it goes, and with which that others want, in the order of `types`. */
const goesWith: Readonly<Record<(typeof types)[number], readonly [held: string, wanted: string]>> =
  {
    SHARED: ['+++++++++-', '+++++++++-'],
    SHARED_HIGH_PRIO: ['+++++++++-', '++++++++++'],
    SHARED_READ: ['++++++++--', '++++++++--'],
    SHARED_WRITE: ['++++++----', '+++++++---'],
    SHARED_WRITE_LOW_PRIO: ['++++++----', '++++++----'],
    SHARED_UPGRADABLE: ['+++++-+---', '+++++++++-'],
    SHARED_READ_ONLY: ['+++--+++--', '+++-++++--'],
    SHARED_NO_WRITE: ['+++---+---', '+++++++++-'],
    SHARED_NO_READ_WRITE: ['++--------', '+++++++++-'],
    EXCLUSIVE: ['----------', '++++++++++'],
  }

/** Whether somebody who holds `other`, or waits for it, is in the way of whoever wants `wanted`. */
export function isInTheWay(wanted: string, other: string, isGranted: boolean): boolean {
  const at = (types as readonly string[]).indexOf(other)
  const row = goesWith[wanted as (typeof types)[number]]
  // Those of a server, a schema or a name have three kinds: only two that intend to change something go together.
  if (at === -1 || row === undefined)
    return isGranted && !(wanted === other && wanted !== 'EXCLUSIVE')
  return row[isGranted ? 0 : 1][at] !== '+'
}
