import { holdfastError } from '../core/errors.ts'
import { isStorable } from '../core/storable.ts'
import { type MoveFacts, moveShape, refuseHiddenRows } from '../engines/postgres/shards/moves.ts'
import type { MoveEnds } from './move-run.ts'
import { peerConnection } from './peer-connection.ts'

/** What a row of a table needs where it is stored: a column, a label of an enum, a partition. */
type Need = readonly [table: string, what: string, type: string, needed: boolean]
type Shape = readonly Need[]

const namePart = String.raw`(?:[^\s".]+|"(?:[^"]|"")+")`
const tableName = new RegExp(`^(?:${namePart}\\.)?${namePart}$`)

/** Names of tables of the caller's own. @throws OPTION_INVALID */
export function checkedTables(tables: unknown): readonly string[] {
  const isTable = (each: unknown): each is string => isStorable(each) && tableName.test(each)
  if (Array.isArray(tables) && tables.every(isTable)) return tables
  const subject = 'tables must be a list of names, such as public.orders'
  throw holdfastError('OPTION_INVALID', { details: { option: 'tables', subject } })
}

/**
 * Looks at both ends of a move before anything is written down.
 *
 * @throws SHARD_MOVE_REFUSED if the target could not store a row as it is at the source, or would not be sent it
 */
export async function assertMovable<Tx>(
  { source, target, connection }: MoveEnds<Tx>,
  { tables }: MoveFacts,
): Promise<void> {
  const { user } = peerConnection(connection)
  const [from = [], to = []] = await Promise.all(
    [source, target].map(
      async (side) => JSON.parse((await side.ask(moveShape(side.schema, tables))) ?? '[]') as Shape,
    ),
  )
  await source.ask(refuseHiddenRows(source.schema, tables, user ?? null))
  const wrong = missingAt(target.name, from, to) ?? otherTypes(from, to)
  const needed = to.find(([table, what, , needs]) => needs && find(from, table, what) === undefined)
  const subject = wrong ?? (needed && `${source.name} has no ${needed[0]}.${needed[1]}`)
  if (subject !== undefined) throw holdfastError('SHARD_MOVE_REFUSED', { details: { subject } })
}

function find(shape: Shape, table: string, what: string): Need | undefined {
  return shape.find((need) => need[0] === table && need[1] === what)
}

function missingAt(name: string, from: Shape, to: Shape): string | undefined {
  const missing = from.find(
    ([table, what, type]) =>
      find(to, table, what) === undefined && !(type === 'partition' && takesAll(to, table)),
  )
  return missing && `${name} has no ${missing[0]}.${missing[1]}`
}

/** Whether the table has a place for every row: it has no partitions, or one for the rest. */
function takesAll(shape: Shape, table: string): boolean {
  const partitions = shape.filter((need) => need[0] === table && need[2] === 'partition')
  return partitions.length === 0 || partitions.some((need) => need[1].includes('DEFAULT'))
}

function otherTypes(from: Shape, to: Shape): string | undefined {
  const other = from.find(([table, what, type]) => (find(to, table, what)?.[2] ?? type) !== type)
  return other && `${other[0]}.${other[1]} has another type at the target`
}
