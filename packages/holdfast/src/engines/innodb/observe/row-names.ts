import type { ObservedLock } from '../../../blocking/model.ts'
import { keysCalled } from '../../../core/locks/keys-called.ts'
import type { LockMemory } from '../../../core/locks/lock-memory.ts'
import { isCutOff } from '../locks/lock-name.ts'
import { rowName } from '../sql/row-name.ts'
import type { SeenRowLock } from './seen.ts'

/** What a lock is called, as far as its row says. */
type Name = Pick<ObservedLock, 'name' | 'namespace' | 'source' | 'id' | 'meaning'>

/** Tables of ours whose rows are locked, and what is done under them. */
const ownRows: Readonly<Record<string, readonly [namespace: string, meaning: string]>> = {
  holdfast_lease: [
    'holdfast-lease',
    'A lease is being taken over, or guards the write of its holder.',
  ],
  holdfast_lease_holder: ['holdfast-lease', 'A lease is being renewed or released.'],
  holdfast_once: [
    'holdfast-once',
    'Work is being done once; duplicates of it wait for its result.',
  ],
  holdfast_schedule: ['holdfast-schedule', 'A tick of the schedule is being taken.'],
}

/** As they are shown in lock views, in quotes; none of ours has a quote in it. */
const quoted = /^'([^']*)'/
const lockRow = /^(.*)#([0-9a-f]{16})$/
const ownRow = /^(.*)#([0-9a-f]{64})$/

/** What the row of a named lock says, if the number in it is that of a key of this name. */
export function nameOfRow(row: string, memory: LockMemory): Name | undefined {
  const [, shown = '', hex] = lockRow.exec(row) ?? []
  if (hex === undefined) return undefined
  const number = BigInt.asIntN(64, BigInt(`0x${hex}`))
  const id = `1:${number}`
  const used = memory.get(number)
  if (used !== undefined)
    return { name: used.name, namespace: used.namespace, source: 'process', id }
  for (const key of keysCalled(shown))
    if (key.id === number) return { name: shown, namespace: key.namespace, source: 'row', id }
  // What stands there is not all of the name, so that its number says nothing about it.
  return isCutOff(shown) ? { name: `${shown}…`, source: 'row', id } : undefined
}

/** The name of a lock, if it is one of ours. */
export function nameOfLock(
  { database, table, isRow, data }: SeenRowLock,
  ours: string | undefined,
  memory: LockMemory,
): Name | undefined {
  const row = quoted.exec(data ?? '')?.[1]
  if (!isRow || row === undefined || database !== ours) return undefined
  if (table === 'holdfast_lock') return nameOfRow(row, memory)
  const [namespace, meaning] = ownRows[table] ?? []
  const [, shown, number = ''] = ownRow.exec(row) ?? []
  if (namespace === undefined || shown === undefined) return undefined
  // The scope is the key itself unless another one was given, and a schedule has none.
  const isAll = row === rowName(shown, shown) || row === rowName(shown)
  const name = isAll ? shown : `${shown}…${number.slice(0, mostOfNumber)}`
  return { name: `${namespace}:${name}`, namespace, source: 'known', meaning: meaning ?? '' }
}

/** Of the number of a row that does not show all of its name: two that show the same are told apart. */
const mostOfNumber = 8
