import type { Scope } from '../../../core/bucket.ts'
import type { PackedValues, Statement, Value } from '../../../core/driver.ts'
import {
  arrayBytes,
  elements,
  writeHead,
  writeInt2,
  writeInt8,
  writeUuid,
} from '../sql/binary-array.ts'
import { type FunctionCall, functionCall } from '../sql/function-call.ts'
import { quoteIdentifier, quoteLiteral } from '../sql/identifier.ts'
import type { Words } from '../sql/uuid-words.ts'
import { isMarked } from '../tx/join-marker.ts'

/** A key as the table has it. */
export interface LimitKey {
  readonly bucket: number
  readonly uuid: string
  /** The same as four numbers of 32 bits. */
  readonly words: Words
}

/** An amount of one key that is to be used up as a whole. */
export interface Taking {
  readonly id: LimitKey
  /** No larger than `most` by more than one. */
  readonly amount: number
  readonly most: number
  /** Of a rate, microseconds in which one of the caller's units comes back. */
  readonly unit: number
}

/** A calendar window; without it, a rate. */
export interface LimitWindow {
  readonly unit: string
  readonly zone: string
}

/** How long a statement that callers share waits for a row. Longer has it only a transaction of somebody's own. */
const sharedLockMs = 200

/** How many old rows are looked at for each new one. In the caller's transaction none: it would keep them locked. */
const beside = 4

/** Where a statement runs: on its own, in a transaction that is open, or in one that has to prove it by a marker. */
export type LimitPlace = 'alone' | 'joined' | 'marked'

/** The statements of one limit that use something up. */
export type TakingStatement = (takings: readonly Taking[]) => Statement

/** Keys in the order of the primary key, each once; see `sql/app/take_in_window.sql`. */
export function takingStatement(
  schema: string,
  window: LimitWindow | undefined,
  where: LimitPlace,
): TakingStatement {
  const name = window === undefined ? 'take_at_rate' : 'take_in_window'
  const look = where === 'alone' ? beside : 0
  const rest =
    window === undefined ? '$5' : `${quoteLiteral(window.unit)}, ${quoteLiteral(window.zone)}`
  // No casts: there is one function of that name, and each cast would be looked up in every call.
  const call = `${quoteIdentifier(schema)}.${name}($1, $2, $3, $4, ${rest}, ${look})`
  const answers: Readonly<Record<LimitPlace, string>> = {
    alone: `CASE WHEN pg_catalog.set_config('lock_timeout', '${sharedLockMs}', true) IS NOT NULL THEN ${call} END`,
    joined: call,
    marked: `CASE WHEN ${isMarked} THEN ${call} END`,
  }
  const text = `SELECT ${answers[where]} AS answer, pg_catalog.pg_backend_pid()::pg_catalog.text AS pid`
  return (takings) => new Takings(text, `${name}_${where}`, takings, window === undefined)
}

const columns = ['answer', 'pid']

/** A statement whose values are made by whoever sends it, in the form in which it is sent. */
class Takings implements Statement, PackedValues {
  readonly text: string
  readonly name: string
  readonly columns: readonly string[] = columns
  readonly count: number
  readonly #takings: readonly Taking[]
  /** Whose limits are sent: only the first one's, if all are the same. */
  readonly #limits: readonly Taking[]
  readonly #isRate: boolean

  constructor(text: string, name: string, takings: readonly Taking[], isRate: boolean) {
    this.text = text
    this.name = name
    this.count = isRate ? 5 : 4
    this.#takings = takings
    this.#isRate = isRate
    const [first] = takings
    const alike = takings.every(({ most, unit }) => most === first?.most && unit === first.unit)
    this.#limits = alike ? takings.slice(0, 1) : takings
  }

  get packed(): PackedValues {
    return this
  }

  get scopes(): readonly Scope[] {
    return this.#takings.map(({ id }) => id.bucket)
  }

  get values(): readonly Value[] {
    const takings = this.#takings
    return [
      literal(takings.map(({ id }) => id.bucket)),
      literal(takings.map(({ id }) => id.uuid)),
      literal(takings.map(({ amount }) => amount)),
      literal(this.#limits.map(({ most }) => most)),
      ...(this.#isRate ? [literal(this.#limits.map(({ unit }) => unit))] : []),
    ]
  }

  get bytes(): number {
    const { int2, int8, uuid } = elements
    const { length } = this.#takings
    return (
      arrayBytes(int2, length) +
      arrayBytes(uuid, length) +
      arrayBytes(int8, length) +
      arrayBytes(int8, this.#limits.length) * (this.#isRate ? 2 : 1)
    )
  }

  write(to: Buffer, start: number): number {
    const { int2, int8, uuid } = elements
    const takings = this.#takings
    let at = writeHead(to, start, int2, takings.length)
    for (const { id } of takings) at = writeInt2(to, at, id.bucket)
    at = writeHead(to, at, uuid, takings.length)
    for (const { id } of takings) at = writeUuid(to, at, id.words)
    at = writeHead(to, at, int8, takings.length)
    for (const { amount } of takings) at = writeInt8(to, at, amount)
    at = writeHead(to, at, int8, this.#limits.length)
    for (const { most } of this.#limits) at = writeInt8(to, at, most)
    if (!this.#isRate) return at
    at = writeHead(to, at, int8, this.#limits.length)
    for (const { unit } of this.#limits) at = writeInt8(to, at, unit)
    return at
  }
}

/** Numbers and hexadecimal digits, which need no quotes. */
function literal(elements: readonly (string | number)[]): string {
  return `{${elements.join(',')}}`
}

/** See `sql/app/look_at_limit.sql`. */
export function lookAtLimit(
  schema: string,
  { bucket, uuid }: LimitKey,
  window: LimitWindow | undefined,
): FunctionCall {
  return functionCall(
    schema,
    'look_at_limit',
    [
      ['int2', bucket],
      ['uuid', uuid],
      ['text', window?.unit ?? null],
      ['text', window?.zone ?? null],
    ],
    [bucket],
  )
}

/** Without `limitMs` it waits as long as the caller's own settings say. */
export function resetLimit(
  schema: string,
  { bucket, uuid }: LimitKey,
  limitMs?: number,
): FunctionCall {
  return functionCall(
    schema,
    'reset_limit',
    [
      ['int2', bucket],
      ['uuid', uuid],
    ],
    [bucket],
    limitMs === undefined ? undefined : { limitMs, yields: true, budgetMs: undefined },
  )
}

/** `[deleted, bucket, key]`; see `sql/app/forget_limits.sql`. */
export function forgetLimits(
  schema: string,
  after: readonly [bucket: number, key: string],
  most: number,
): FunctionCall {
  return functionCall(schema, 'forget_limits', [
    ['int2', after[0]],
    ['uuid', after[1]],
    ['int4', most],
  ])
}

/** Numbers of the keys that are locked, from 1. */
export function lockedLimits(schema: string, keys: readonly LimitKey[]): Statement {
  const { plain } = functionCall(
    schema,
    'locked_limits',
    [
      ['int2[]', literal(keys.map(({ bucket }) => bucket))],
      ['uuid[]', literal(keys.map(({ uuid }) => uuid))],
    ],
    keys.map(({ bucket }) => bucket),
  )
  return plain
}
