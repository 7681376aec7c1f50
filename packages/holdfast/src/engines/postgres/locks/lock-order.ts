import type { LockMemory } from '../../../core/locks/lock-memory.ts'
import type { OrderLock } from '../../../core/locks/order-graph.ts'
import { type OrderSeen, type OrderWatch, rowsPrefix } from '../../../core/locks/order-watch.ts'
import type { TableName } from '../../../core/table-name.ts'
import { tableText } from '../sql/identifier.ts'
import type { LockMode, WantedLock } from '../../../core/locks/wanted-lock.ts'
import type { LockAnswer, LockToken } from '../../../locks/engine.ts'
import { heldBy, rowsToken } from './locks.ts'

/**
 * From the numbers of the marker to what the order watch compares: namespaces, kinds of legacy keys, tables.
 * A number that nobody remembers is left out; nothing is said about it.
 */

/** Of locks by name that were just granted, waited for. */
export function seenLocks(
  { before, rowsBefore, granted }: LockAnswer,
  memory: LockMemory,
  watch: OrderWatch,
): OrderSeen {
  const taken: OrderLock[] = []
  const upgraded: string[] = []
  for (const token of granted) {
    const had = before.filter(({ space, id }) => space === token.space && id === token.id)
    const node = grantedNode(token, memory, watch)
    if (had.some(({ mode }) => mode === 'exclusive' || mode === token.mode)) continue
    if (had.length > 0) upgraded.push(node)
    taken.push({ node, mode: token.mode, id: token.id })
  }
  return { held: heldLocks({ before, rowsBefore }, memory, watch), taken, upgraded }
}

/** Of rows that were just locked. `marker` is what the transaction holds since then. */
export function seenRows(
  marker: string,
  table: TableName,
  mode: LockMode,
  memory: LockMemory,
  watch: OrderWatch,
): OrderSeen {
  const node = rowsPrefix + (table.schema === undefined ? '' : `${table.schema}.`) + table.table
  watch.tables.set(rowsToken(tableText(table), mode), node)
  const held = heldLocks(heldBy(marker), memory, watch).filter((lock) => lock.node !== node)
  return { held, taken: [{ node, mode }], upgraded: [] }
}

/** The locks by name among what is held, as far as their names are remembered. */
export function heldKeys(marker: string, memory: LockMemory): readonly WantedLock[] {
  return heldBy(marker).before.flatMap(({ id, mode }) => {
    const key = memory.get(id)
    return key === undefined ? [] : [{ key: { ...key, scope: key.name }, mode }]
  })
}

function heldLocks(
  { before, rowsBefore }: Pick<LockAnswer, 'before' | 'rowsBefore'>,
  memory: LockMemory,
  watch: OrderWatch,
): readonly OrderLock[] {
  const held: OrderLock[] = []
  for (const { mode, space, id } of before) {
    const node = space === 2 ? pairNode(id) : (nodeOf(id, memory) ?? watch.hashed.get(id))
    if (node !== undefined) held.push({ node, mode, id })
  }
  for (const token of rowsBefore) {
    const node = watch.tables.get(token)
    if (node !== undefined) held.push({ node, mode: token[1] === 's' ? 'shared' : 'exclusive' })
  }
  return held
}

/** What was asked for is remembered; what is not, has a number that the server worked out. */
function grantedNode({ space, id }: LockToken, memory: LockMemory, watch: OrderWatch): string {
  if (space === 2) return pairNode(id)
  const node = nodeOf(id, memory)
  if (node !== undefined) return node
  watch.hashed.set(id, hashtextNode)
  return hashtextNode
}

function nodeOf(id: bigint, memory: LockMemory): string | undefined {
  const key = memory.get(id)
  return key?.name.startsWith('legacy:') && key.namespace === 'legacy' ? bigintNode : key?.namespace
}

const hashtextNode = 'legacyKey.hashtext'
const bigintNode = 'legacyKey.bigint'

/** Hand-written SQL has its namespace in the first number of a pair. */
function pairNode(id: bigint): string {
  return `legacyKey.pair(${id >> 32n})`
}
