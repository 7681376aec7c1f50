/**
 * A small database in memory, to test the search and nothing else: rows with snapshots, row locks and
 * advisory locks in order of arrival, unique keys, deadlocks. The same claims are tested on PostgreSQL.
 */
import type { Footprint, Touch } from '../../../src/core/model.ts'

export type Isolation = 'read committed' | 'repeatable read'

/** What a flow can send. `row` is `t#k=0`; a statement leaves a number, its answer. */
export type Statement =
  | { readonly op: 'begin'; readonly isolation?: Isolation }
  | { readonly op: 'commit' }
  | { readonly op: 'rollback' }
  | { readonly op: 'read'; readonly row: string }
  | { readonly op: 'sum'; readonly table: string }
  | { readonly op: 'add'; readonly row: string; readonly by: number }
  | { readonly op: 'set'; readonly row: string; readonly to: number }
  | { readonly op: 'lock'; readonly row: string }
  | { readonly op: 'append'; readonly table: string; readonly value: number }
  | { readonly op: 'insert'; readonly row: string; readonly value: number }
  | { readonly op: 'advisory'; readonly key: string }
  | { readonly op: 'try'; readonly key: string }
  /** A function: waits for the lock and reads under a new snapshot. */
  | { readonly op: 'wait-and-sum'; readonly key: string; readonly table: string }

interface Transaction {
  readonly isolation: Isolation
  readonly explicit: boolean
  readonly writes: Map<string, number>
  readonly appended: { table: string; value: number }[]
  readonly locks: Set<string>
  snapshot: Map<string, Version> | undefined
  snapshotAppended: number | undefined
}

interface Version {
  readonly value: number
  readonly version: number
}

interface Lock {
  holder: number
  readonly queue: number[]
}

export class ModelError extends Error {
  readonly sqlstate: string

  constructor(sqlstate: string) {
    super(sqlstate)
    this.sqlstate = sqlstate
  }
}

/** How a statement went on: it answered, failed, or waits. */
export type Outcome = { readonly answer: number } | { readonly error: ModelError } | 'waits'

export class ModelDatabase {
  readonly #rows: Map<string, Version>
  readonly #appended: { table: string; value: number }[] = []
  readonly #locks = new Map<string, Lock>()
  readonly #transactions = new Map<number, Transaction>()
  readonly #waiting = new Map<number, { statement: Statement; object: string; snapshot: View }>()
  readonly #tableLevel: boolean
  #version = 1

  constructor(rows: Readonly<Record<string, number>>, tableLevel: boolean) {
    this.#rows = new Map(Object.entries(rows).map(([row, value]) => [row, { value, version: 0 }]))
    this.#tableLevel = tableLevel
  }

  /** Final rows as text; appended rows without their order. */
  state(): string {
    const rows = [...this.#rows].map(([row, { value }]) => `${row}:${value}`).sort()
    const appended = this.#appended.map(({ table, value }) => `${table}+${value}`).sort()
    return [...rows, ...appended].join(' ')
  }

  inTransaction(session: number): boolean {
    return this.#transactions.get(session)?.explicit ?? false
  }

  waitsFor(session: number): number[] {
    const waiting = this.#waiting.get(session)
    const lock = waiting && this.#locks.get(waiting.object)
    if (lock === undefined) return []
    return [lock.holder, ...lock.queue.slice(0, lock.queue.indexOf(session))]
  }

  /** Sessions of a circle of waiting ones that `session` is part of. */
  circle(session: number): number[] {
    const path: number[] = []
    const visit = (at: number): boolean => {
      if (at === session && path.length > 0) return true
      if (path.includes(at)) return false
      path.push(at)
      if (this.waitsFor(at).some(visit)) return true
      path.pop()
      return false
    }
    return visit(session) ? path : []
  }

  execute(session: number, statement: Statement): Outcome {
    if (statement.op === 'begin') {
      this.#transactions.set(session, open(statement.isolation ?? 'read committed', true))
      return { answer: 0 }
    }
    if (statement.op === 'commit') return this.commit(session)
    if (statement.op === 'rollback') return this.abort(session)
    if (!this.#transactions.has(session))
      this.#transactions.set(session, open('read committed', false))
    const transaction = this.#transaction(session)
    if (transaction.isolation === 'repeatable read' && transaction.snapshot === undefined) {
      transaction.snapshot = new Map(this.#rows)
      transaction.snapshotAppended = this.#appended.length
    }
    const object = lockOf(statement)
    const view = this.#view(transaction)
    if (object !== undefined && statement.op !== 'try') {
      const lock = this.#locks.get(object)
      if (lock !== undefined && lock.holder !== session) {
        lock.queue.push(session)
        this.#waiting.set(session, { statement, object, snapshot: view })
        return 'waits'
      }
      this.#take(session, object)
    }
    return this.#perform(session, statement, view)
  }

  commit(session: number): Outcome {
    const transaction = this.#transactions.get(session)
    if (transaction === undefined) return { answer: 0 }
    for (const [row, value] of transaction.writes)
      this.#rows.set(row, { value, version: this.#version++ })
    this.#appended.push(...transaction.appended)
    this.#transactions.delete(session)
    this.#release(session, transaction)
    return { answer: 0 }
  }

  abort(session: number): Outcome {
    const transaction = this.#transactions.get(session)
    const waiting = this.#waiting.get(session)
    if (waiting !== undefined) {
      const queue = this.#locks.get(waiting.object)?.queue
      queue?.splice(queue.indexOf(session), 1)
      this.#waiting.delete(session)
    }
    this.#transactions.delete(session)
    if (transaction !== undefined) this.#release(session, transaction)
    return { answer: 0 }
  }

  /** Goes on with one statement whose lock was granted to it; undefined if there is none. */
  resume(): { readonly session: number; readonly outcome: Outcome } | undefined {
    for (const [session, { statement, object, snapshot }] of this.#waiting) {
      const lock = this.#locks.get(object)
      if (lock !== undefined && lock.holder !== session) continue
      this.#waiting.delete(session)
      this.#take(session, object)
      return { session, outcome: this.#perform(session, statement, snapshot) }
    }
    return undefined
  }

  /** What a statement touches, as a runner would say it. */
  touches(session: number, statement: Statement): Touch[] {
    const row = (name: string): string => (this.#tableLevel ? (name.split('#')[0] as string) : name)
    const transaction = this.#transactions.get(session)
    const snapshot: Touch[] =
      transaction?.isolation === 'repeatable read' &&
      transaction.snapshot === undefined &&
      !['begin', 'commit', 'rollback'].includes(statement.op)
        ? [{ object: '*', mode: 'read' }]
        : []
    return [...snapshot, ...ownTouches(statement, row)]
  }

  ends(session: number, how: 'commit' | 'rollback'): Footprint['ends'] {
    const transaction = this.#transactions.get(session)
    if (transaction === undefined) return undefined
    const name = (object: string): string =>
      this.#tableLevel ? (object.split('#')[0] as string) : object
    const writes = [
      ...transaction.writes.keys(),
      ...transaction.appended.map(({ table }) => table),
    ].map(name)
    return {
      how,
      writes: how === 'commit' ? [...new Set(writes)] : [],
      locks: [...transaction.locks].map(name),
    }
  }

  isolation(session: number): Isolation {
    return this.#transactions.get(session)?.isolation ?? 'read committed'
  }

  #transaction(session: number): Transaction {
    return this.#transactions.get(session) as Transaction
  }

  #view(transaction: Transaction): View {
    const rows = transaction.snapshot ?? new Map(this.#rows)
    const appended = this.#appended.slice(0, transaction.snapshotAppended ?? undefined)
    return { rows, appended }
  }

  #take(session: number, object: string): void {
    const lock = this.#locks.get(object)
    if (lock === undefined) this.#locks.set(object, { holder: session, queue: [] })
    this.#transaction(session).locks.add(object)
  }

  #release(session: number, transaction: Transaction): void {
    for (const object of transaction.locks) {
      const lock = this.#locks.get(object)
      if (lock?.holder !== session) continue
      const next = lock.queue.shift()
      if (next === undefined) this.#locks.delete(object)
      else lock.holder = next
    }
  }

  /** The lock, if any, is held now. */
  #perform(session: number, statement: Statement, view: View): Outcome {
    const transaction = this.#transaction(session)
    const own = (row: string): number | undefined => transaction.writes.get(row)
    const sum = (table: string, seen: View): number => {
      const values = new Map(
        [...seen.rows].filter(([row]) => row.startsWith(`${table}#`)).map(([r, v]) => [r, v.value]),
      )
      for (const [row, value] of transaction.writes)
        if (row.startsWith(`${table}#`)) values.set(row, value)
      const appended = [...seen.appended, ...transaction.appended].filter(
        (line) => line.table === table,
      )
      return [...values.values(), ...appended.map(({ value }) => value)].reduce((a, b) => a + b, 0)
    }
    const newest = (row: string): number => own(row) ?? this.#rows.get(row)?.value ?? 0
    const stale = (row: string): boolean =>
      transaction.snapshot !== undefined &&
      transaction.snapshot.get(row)?.version !== this.#rows.get(row)?.version
    switch (statement.op) {
      case 'read':
        return { answer: own(statement.row) ?? view.rows.get(statement.row)?.value ?? 0 }
      case 'sum':
        return { answer: sum(statement.table, view) }
      case 'add':
      case 'set':
      case 'lock': {
        if (stale(statement.row)) return this.#fail(session, '40001')
        if (statement.op === 'lock') return { answer: newest(statement.row) }
        const value = statement.op === 'add' ? newest(statement.row) + statement.by : statement.to
        transaction.writes.set(statement.row, value)
        return { answer: value }
      }
      case 'append':
        transaction.appended.push({ table: statement.table, value: statement.value })
        return { answer: 1 }
      case 'insert':
        if (own(statement.row) !== undefined || this.#rows.has(statement.row))
          return this.#fail(session, '23505')
        transaction.writes.set(statement.row, statement.value)
        return { answer: 1 }
      case 'advisory':
        return { answer: 1 }
      case 'try': {
        const lock = this.#locks.get(statement.key)
        if (lock !== undefined && lock.holder !== session) return { answer: 0 }
        this.#take(session, statement.key)
        return { answer: 1 }
      }
      case 'wait-and-sum':
        return { answer: sum(statement.table, this.#view(transaction)) }
      case 'begin':
      case 'commit':
      case 'rollback':
        throw new Error('only executed')
    }
  }

  #fail(session: number, sqlstate: string): Outcome {
    this.abort(session)
    return { error: new ModelError(sqlstate) }
  }
}

interface View {
  readonly rows: ReadonlyMap<string, Version>
  readonly appended: readonly { readonly table: string; readonly value: number }[]
}

function open(isolation: Isolation, explicit: boolean): Transaction {
  return {
    isolation,
    explicit,
    writes: new Map(),
    appended: [],
    locks: new Set(),
    snapshot: undefined,
    snapshotAppended: undefined,
  }
}

/** The object that the statement locks, if it locks one. */
function lockOf(statement: Statement): string | undefined {
  switch (statement.op) {
    case 'add':
    case 'set':
    case 'lock':
    case 'insert':
      return statement.row
    case 'advisory':
    case 'try':
    case 'wait-and-sum':
      return statement.key
    case 'begin':
    case 'commit':
    case 'rollback':
    case 'read':
    case 'sum':
    case 'append':
      return undefined
  }
}

function ownTouches(statement: Statement, row: (name: string) => string): Touch[] {
  switch (statement.op) {
    case 'read':
      return [{ object: row(statement.row), mode: 'read' }]
    case 'sum':
      return [{ object: statement.table, mode: 'read' }]
    case 'add':
    case 'set':
    case 'lock':
      return [{ object: row(statement.row), mode: 'lock' }]
    case 'append':
      return [{ object: statement.table, mode: 'append' }]
    case 'insert':
      return [{ object: row(statement.row), mode: 'insert' }]
    case 'advisory':
      return [{ object: statement.key, mode: 'exclusive' }]
    case 'try':
      return [{ object: statement.key, mode: 'attempt' }]
    case 'wait-and-sum':
      return [
        { object: statement.key, mode: 'exclusive' },
        { object: statement.table, mode: 'read' },
      ]
    case 'begin':
    case 'commit':
    case 'rollback':
      return []
  }
}
