/** What each flow read of a row and made of it, in the failing run and in the serial ones: what fixes are judged by. */
import { assignedBy, changeOf, sentValue } from './assignments.ts'
import { changedNothing, type History, type Moment } from '../anomaly/history.ts'
import { knownTable, readArray, sameJson } from './known.ts'
import { readJson } from '../../core/read-json.ts'
import { namesOtherRow } from '../anomaly/row-key.ts'
import { tableOf } from '../words.ts'

/** One flow in one run. */
export interface Turn {
  readonly flow: number
  /** Those of the table, in order. */
  readonly columns: readonly string[]
  /** The one row that it read first, by column; undefined if it read none. */
  readonly seen: ReadonlyMap<string, string | null> | undefined
  /** It looked, and there was no such row. */
  readonly absent: boolean
  /** The change of the row that it committed. */
  readonly write: Moment | undefined
}

/** Of every flow that touches the row which `write` is about. */
export function turnsOf(runs: readonly History[], write: Moment): Turn[] {
  const known = runs[0]?.known ?? []
  const all = knownTable({ known }, tableOf(write))?.columns.map(({ name }) => name) ?? []
  const isMeant = (moment: Moment): boolean =>
    tableOf(moment) === tableOf(write) &&
    moment.step.half !== 'commit' &&
    !namesOtherRow({ known }, moment, write)
  return runs.flatMap(({ moments }) => {
    const flows = Map.groupBy(moments.filter(isMeant), ({ step }) => step.flow)
    return [...flows].map(([flow, own]): Turn => {
      const read = own.find(({ statement, step }) => {
        return statement.verb === 'SELECT' && step.answer.rowCount <= 1
      })
      const { columns = [], rows = [] } = read?.step.answer ?? {}
      const [row] = rows
      return {
        flow,
        columns: all,
        seen: row && new Map(columns.map((column, at) => [column, row[at] ?? null])),
        absent: read?.step.answer.rowCount === 0,
        write: own.find(
          (one) =>
            assignedBy(one).length > 0 && !changedNothing(one) && one.transaction?.end === 'commit',
        ),
      }
    })
  })
}

/** The turns in which a flow sent a value for the column; undefined if it is not known what one of them changed. */
function changesIn(turns: readonly Turn[], column: string): readonly Change[] | undefined {
  const all = turns.flatMap(({ flow, columns, seen, absent, write }): (Change | undefined)[] => {
    if (write === undefined) return []
    const computed = changeOf(write, column) !== undefined
    const to = sentValue(write, column, columns)
    const isSet = assignedBy(write).some((one) => one.column === column)
    if (!isSet || computed) return []
    const from = seen?.get(column) ?? (absent ? '' : undefined)
    return typeof from === 'string' && typeof to === 'string' ? [{ flow, from, to }] : [undefined]
  })
  return all.includes(undefined) ? undefined : all.flatMap((one) => one ?? [])
}

interface Change {
  readonly flow: number
  readonly from: string
  readonly to: string
}

/** The same part of every flow, whatever there was before: then it is added, and not set. */
function constantPart<Part>(
  changes: readonly Change[],
  partOf: (change: Change) => Part | undefined,
): ReadonlyMap<number, Part> | undefined {
  const parts = new Map<number, Part>()
  for (const [flow, own] of Map.groupBy(changes, (one) => one.flow)) {
    const found = own.map(partOf)
    const [first] = found
    const seen = new Set(own.map(({ from }) => from))
    if (first === undefined || seen.size < 2) return undefined
    if (!found.every((one) => one !== undefined && sameJson(one, first))) return undefined
    parts.set(flow, first)
  }
  return parts
}

/** By how much a flow changes a number, if every flow does that, always by the same, to whatever is there. */
export function addedNumber(
  turns: readonly Turn[],
  column: string,
  flow: number,
): number | undefined {
  const changes = changesIn(turns, column)
  const number = /^-?\d+(?:\.\d+)?$/
  const by = constantPart(changes ?? [], ({ from, to }) => {
    // No row is as good as nothing.
    const old = from === '' ? '0' : from
    if (!number.test(old) || !number.test(to)) return undefined
    const difference = Number(to) - Number(old)
    return Number.isSafeInteger(difference) ? difference : undefined
  })?.get(flow)
  return by === 0 ? undefined : by
}

/**
 * What a flow appends to a list, or which new keys it adds to a document: nobody refuses, nobody changes anything else,
 * and no key is another flow's too.
 */
export function appendedPart(
  turns: readonly Turn[],
  column: string,
  flow: number,
  type: string,
): string | undefined {
  const changes = changesIn(turns, column)
  const isLossless = changes?.every(({ from, to }) => !/\d{16}/.test(from + to)) === true
  if (!isLossless || turns.some(({ seen, write }) => seen && !write)) return undefined
  if (type.startsWith('_')) {
    const parts = constantPart(changes, ({ from, to }) => tail(readArray(from), readArray(to)))
    const own = parts?.get(flow)
    return own && `{${own.map((one) => (one === null ? 'NULL' : JSON.stringify(one))).join(',')}}`
  }
  if (type !== 'jsonb') return undefined
  const parts = constantPart(changes, ({ from, to }) => {
    const [old, now] = [readJson(from), readJson(to)]
    return Array.isArray(old) && Array.isArray(now) ? tail(old, now) : newKeys(old, now)
  })
  const names = [...(parts?.values() ?? [])].flatMap((part) =>
    Array.isArray(part) ? [] : Object.keys(part),
  )
  const own = parts?.get(flow)
  return own === undefined || new Set(names).size < names.length ? undefined : JSON.stringify(own)
}

/** What comes after the old elements, if those are still at the front. */
function tail<One>(
  old: readonly One[] | undefined,
  now: readonly One[] | undefined,
): One[] | undefined {
  if (old === undefined || now === undefined || now.length <= old.length) return undefined
  return old.every((one, at) => sameJson(one, now[at])) ? now.slice(old.length) : undefined
}

function newKeys(old: unknown, now: unknown): Record<string, unknown> | undefined {
  if (!isObject(old) || !isObject(now)) return undefined
  if (!Object.entries(old).every(([name, value]) => name in now && sameJson(value, now[name]))) {
    return undefined
  }
  const added = Object.entries(now).filter(([name]) => !(name in old))
  return added.length === 0 ? undefined : Object.fromEntries(added)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Numbers that the flow saw, beside whether it wrote; undefined where it is not known. */
export function decisionsOn(
  turns: readonly Turn[],
  flow: number,
  columns: readonly string[],
): readonly { readonly values: readonly number[]; readonly wrote: boolean }[] {
  return turns.flatMap((turn) => {
    if (turn.flow !== flow || turn.seen === undefined) return []
    const values = columns.map((column) => Number(turn.seen?.get(column) ?? Number.NaN))
    return values.some(Number.isNaN) ? [] : [{ values, wrote: turn.write !== undefined }]
  })
}
