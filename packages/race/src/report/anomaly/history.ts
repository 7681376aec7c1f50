import { overlap } from '../../core/footprint.ts'
import type { KnownTable, Run, Step } from '../../core/model.ts'
import { readStatement, type Statement } from '../sql/statement.ts'
import { undoneIn } from './undone.ts'

/** What a step is to a reader. */
export type MomentKind =
  | 'begin'
  | 'read'
  /** Locks and writes nothing: FOR UPDATE, LOCK TABLE, an advisory lock. */
  | 'lock'
  | 'write'
  | 'commit'
  | 'rollback'
  /** Nothing that others notice: SET, SAVEPOINT. */
  | 'local'
  | 'crash'
  | 'lost-answer'
  | 'victim'

/** A step with what the report needs to know of it. */
export interface Moment {
  readonly step: Step
  /** As people count: the first is 1. */
  readonly number: number
  /** Name of the flow. */
  readonly who: string
  readonly kind: MomentKind
  /** The statement that gives the step its kind. */
  readonly statement: Statement
  /** Commits up to this index were visible to it. */
  readonly seenAt: number
  readonly transaction: Transaction | undefined
  /** Its transaction went back to a savepoint before it. */
  readonly undone: boolean
}

/** From BEGIN, or from a statement without it, to its end. */
export interface Transaction {
  readonly flow: number
  readonly lane: number
  readonly first: number
  /** Index of the step that ended it; undefined if it was still open at the end of the run. */
  readonly last: number | undefined
  readonly end: 'commit' | 'rollback' | 'cut' | undefined
  /** One statement without BEGIN. */
  readonly autocommit: boolean
  /** Objects that its commit made visible. */
  readonly writes: readonly string[]
}

export interface History {
  readonly run: Run
  readonly flows: readonly string[]
  readonly moments: readonly Moment[]
  readonly transactions: readonly Transaction[]
  /** The schema that is not mentioned when tables are named. */
  readonly schema: string
  /** The tables before the run, as far as they were looked at. */
  readonly known: readonly KnownTable[]
}

export function readHistory(
  run: Run,
  flows: readonly string[],
  known: readonly KnownTable[] = [],
): History {
  const undone = undoneIn(run.steps)
  const transactions = transactionsOf(run.steps, undone)
  const moments = run.steps.map((step): Moment => {
    const transaction = transactions.find((one) => contains(one, step))
    const statement = tellingStatement(step)
    return {
      step,
      number: step.index + 1,
      who: flows[step.flow] ?? `flow ${step.flow + 1}`,
      kind: kindOf(step, statement, transaction),
      statement,
      seenAt: seenAt(step, run.steps, transaction),
      transaction,
      undone: undone.has(step),
    }
  })
  return { run, flows, moments, transactions, schema: onlySchema(run), known }
}

/** `public.seats#id=1` → `public.seats` */
export function relationOf(object: string): string {
  return object.split('#')[0] as string
}

/** As people call it: without the schema if there is only one, and `seats id=1` for a row. */
export function nameOf(object: string, { schema }: Pick<History, 'schema'>): string {
  const own = object.startsWith(`${schema}.`) ? object.slice(schema.length + 1) : object
  return own
    .replace(/ ?#/, ' ')
    .replaceAll(/([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{22}/gi, '$1…')
    .trim()
}

/** Whether it found nothing to change, or nothing to add. */
export function changedNothing({ step: { answer } }: Moment): boolean {
  return answer.error === undefined && /^(?:INSERT 0|UPDATE|DELETE|MERGE) 0$/.test(answer.tag ?? '')
}

/** What its commit made visible: of a whole transaction without what went back to a savepoint. */
export function madeVisible({ step, transaction }: Moment): readonly string[] {
  const { ends } = step.footprint
  if (ends?.how !== 'commit') return []
  return transaction?.last === step.index ? transaction.writes : ends.writes
}

/** The schema of everything that was touched, or `public` if there are several. */
function onlySchema({ steps }: Run): string {
  const objects = steps.flatMap(({ footprint: { touches, ends } }) => [
    ...touches.map(({ object }) => object),
    ...(ends?.writes ?? []),
  ])
  const relations = objects.map(relationOf).filter((relation) => relation.includes('.'))
  const schemas = new Set(relations.map((relation) => relation.slice(0, relation.indexOf('.'))))
  return schemas.size === 1 ? ([...schemas][0] as string) : 'public'
}

function contains({ flow, lane, first, last }: Transaction, step: Step): boolean {
  if (step.flow !== flow || step.lane !== lane) return false
  return step.index >= first && step.index <= (last ?? Number.POSITIVE_INFINITY)
}

function transactionsOf(steps: readonly Step[], undone: ReadonlySet<Step>): Transaction[] {
  type Open = { -readonly [K in keyof Transaction]: Transaction[K] }
  const all: Open[] = []
  const open = new Map<string, Open>()
  for (const step of steps) {
    const lane = `${step.flow} ${step.lane}`
    let current = open.get(lane)
    const cuts = step.choice.action === 'crash'
    if (current === undefined && !cuts && opens(step)) {
      const { flow, lane: number, index: first, half } = step
      const autocommit = half === 'execute' || (step.before === 'I' && step.after === 'I')
      current = {
        flow,
        lane: number,
        first,
        last: undefined,
        end: undefined,
        autocommit,
        writes: [],
      }
      all.push(current)
      open.set(lane, current)
    }
    // Everything that the flow had open goes with it.
    const ended = cuts ? [...open.values()].filter(({ flow }) => flow === step.flow) : [current]
    for (const one of ended) {
      if (one === undefined || (!cuts && !closes(step))) continue
      one.last = step.index
      one.end = cuts ? 'cut' : endOf(step)
      const written = one.end === 'commit' ? (step.footprint.ends?.writes ?? []) : []
      one.writes = written.filter((object) => stays(object, one, steps, undone))
      open.delete(`${one.flow} ${one.lane}`)
    }
  }
  return all
}

/** Whether something of it is left that was not taken back by ROLLBACK TO. */
function stays(
  object: string,
  of: Transaction,
  steps: readonly Step[],
  undone: ReadonlySet<Step>,
): boolean {
  const writers = steps.filter(
    (step) =>
      contains(of, step) &&
      step.footprint.touches.some(
        (touch) => touch.mode !== 'read' && overlap(touch.object, object),
      ),
  )
  return writers.length === 0 || writers.some((step) => !undone.has(step))
}

function opens({ before, after, half, footprint }: Step): boolean {
  // A BEGIN that nobody's mark was on has passed before, and is no step.
  if (half === 'execute' || before !== 'I') return true
  return after !== 'I' || footprint.ends !== undefined || footprint.touches.length > 0
}

/** A transaction in which something failed is rolled back, whatever ends it. */
function endOf({ before, footprint, answer }: Step): 'commit' | 'rollback' {
  if (before === 'E' || answer.error !== undefined) return 'rollback'
  return footprint.ends?.how ?? 'commit'
}

/** An executed half is open until its other half; ROLLBACK TO ends only a part. */
function closes({ half, after }: Step): boolean {
  return half !== 'execute' && after === 'I'
}

/**
 * At READ COMMITTED a statement sees what was committed when it began; rows that it waited to lock
 * are read again when it goes on. Above that the first statement's snapshot is everybody's.
 */
function seenAt(step: Step, steps: readonly Step[], transaction: Transaction | undefined): number {
  if (step.footprint.isolation !== 'read committed' && transaction !== undefined) {
    const first = steps.find(
      (other) => contains(transaction, other) && other.footprint.touches.length > 0,
    )
    return first?.index ?? step.index
  }
  return step.index
}

const writing = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE', 'COPY', 'TRUNCATE'])
const silent = new Set(['SET', 'SHOW', 'SAVEPOINT', 'RELEASE', 'DEALLOCATE', 'DISCARD', 'RESET'])

/** Of several, the first that writes, else the first that is more than housekeeping. */
function tellingStatement(step: Step): Statement {
  const all = step.statements.map((sql) => readStatement(sql, step.parameters))
  return (
    all.find(({ verb }) => writing.has(verb)) ??
    all.find(({ verb }) => verb !== 'BEGIN' && !silent.has(verb)) ??
    all[0] ??
    readStatement('')
  )
}

function kindOf(step: Step, { verb }: Statement, transaction: Transaction | undefined): MomentKind {
  const { action } = step.choice
  if (action === 'crash') return 'crash'
  if (action === 'lose-answer') return 'lost-answer'
  if (action === 'victim') return 'victim'
  if (step.half === 'commit') return 'commit'
  if (verb === 'COMMIT' || verb === 'END') {
    return endOf(step)
  }
  if (verb === 'ROLLBACK' || verb === 'ABORT') return 'rollback'
  if (verb === 'BEGIN' || verb === 'START') return 'begin'
  if (writing.has(verb)) return 'write'
  return touching(step, transaction)
}

function touching(
  { footprint: { touches } }: Step,
  transaction: Transaction | undefined,
): MomentKind {
  const wrote = touches.some(
    ({ mode, object }) =>
      mode === 'insert' ||
      mode === 'append' ||
      // A function may have written what a locking read would only lock.
      (mode === 'lock' && transaction?.autocommit === true && written(transaction, object)),
  )
  if (wrote) return 'write'
  if (touches.some(({ mode }) => ['lock', 'exclusive', 'attempt'].includes(mode))) return 'lock'
  return touches.some(({ mode }) => mode === 'read') ? 'read' : 'local'
}

function written({ writes }: Transaction, object: string): boolean {
  return writes.some((one) => overlap(one, object))
}
