/** Runs scripted flows on the model database, step by step, as the real runner does on PostgreSQL. */
import type {
  Choice,
  Decision,
  FlowOutcome,
  Footprint,
  Half,
  Pending,
  Run,
  Runner,
  Step,
} from '../../../src/core/model.ts'
import { saidByError } from '../../../src/run/answer/said.ts'
import { ModelDatabase, ModelError, type Outcome, type Statement } from './model-database.ts'

export type ModelFlow = () => Generator<Statement, number, number>

export interface ModelOptions {
  readonly rows?: Readonly<Record<string, number>>
  /** Footprints name tables instead of rows. */
  readonly tableLevel?: boolean
  /** Who dies of a deadlock: a choice, or whoever closed the circle. */
  readonly deadlock?: 'choice' | 'closer'
  readonly invariant?: (state: string, outcomes: readonly FlowOutcome[]) => string | undefined
  readonly stepLimit?: number
  /** An autocommit statement is one step, and its commit a part of it. */
  readonly atomic?: boolean
}

type Writable<Type> = { -readonly [Key in keyof Type]: Type[Key] }

interface Session {
  readonly generator: Generator<Statement, number, number>
  statement: Statement | undefined
  half: Half
  /** The answer that the commit half will deliver. */
  held: number
  place: number
  waiting: Writable<Step> | undefined
  outcome: FlowOutcome | undefined
}

export function modelRunner(
  flows: Readonly<Record<string, ModelFlow>>,
  options: ModelOptions = {},
): Runner {
  return {
    flows: Object.keys(flows),
    run: (decide, cast) =>
      Promise.resolve(new ModelRun(Object.values(flows), options).run(decide, cast?.only)),
  }
}

class ModelRun {
  readonly #options: ModelOptions
  readonly #database: ModelDatabase
  readonly #sessions: Session[]
  readonly #steps: Writable<Step>[] = []
  readonly #decisions: Decision[] = []
  #deadlocks = 0
  #circle: number[] = []

  constructor(flows: readonly ModelFlow[], options: ModelOptions) {
    this.#options = options
    this.#database = new ModelDatabase(options.rows ?? {}, options.tableLevel ?? false)
    this.#sessions = flows.map((flow) => ({
      generator: flow(),
      statement: undefined,
      half: 'whole',
      held: 0,
      place: 0,
      waiting: undefined,
      outcome: undefined,
    }))
  }

  run(
    decide: (decision: Decision, steps: readonly Step[]) => Choice,
    only?: readonly number[],
  ): Run {
    this.#sessions.forEach((session, flow) => {
      if (only === undefined || only.includes(flow))
        this.#advance(flow, (generator) => generator.next(0))
      else session.outcome = { kind: 'crashed' }
    })
    for (;;) {
      const enabled = this.#enabled()
      if (enabled.length === 0 || this.#steps.length >= (this.#options.stepLimit ?? 500)) break
      const blocked = [...this.#sessions.keys()].filter((flow) => this.#sessions[flow]?.waiting)
      const decision = { index: this.#steps.length, enabled, blocked }
      const choice = decide(decision, this.#steps)
      this.#decisions.push(decision)
      this.#perform(choice, enabled)
      this.#findCircle()
    }
    const outcomes = this.#sessions.map(({ outcome }) => outcome ?? { kind: 'unfinished' as const })
    const state = this.#database.state()
    const violation = this.#options.invariant?.(state, outcomes)
    const unfinished = outcomes.some(({ kind }) => kind === 'unfinished')
    return {
      steps: this.#steps,
      decisions: this.#decisions,
      outcomes,
      state,
      digest: JSON.stringify([state, ...outcomes.map((outcome) => JSON.stringify(outcome))]),
      tables: [],
      ...(violation === undefined ? {} : { violation }),
      deadlocks: this.#deadlocks,
      ...(unfinished ? { trouble: { kind: 'step-limit', message: 'too many steps' } } : {}),
      notes: [],
    }
  }

  #enabled(): Pending[] {
    const of = (flow: number, action: Choice['action']): Pending => {
      const session = this.#sessions[flow] as Session
      const { op, ...objects } = session.statement as Statement
      const { row, table, key } = objects as { row?: string; table?: string; key?: string }
      const text = [op, row, table, key].filter((part) => part !== undefined).join(' ')
      return {
        choice: { flow, lane: 0, action },
        half: session.half,
        statements: [text],
        parameters: [],
        fingerprint: `${text} ${session.half} ${session.place}`,
      }
    }
    if (this.#circle.length > 0)
      return this.#circle.toSorted((one, other) => one - other).map((flow) => of(flow, 'victim'))
    return [...this.#sessions.keys()]
      .filter((flow) => {
        const { statement, waiting, outcome } = this.#sessions[flow] as Session
        return statement !== undefined && waiting === undefined && outcome === undefined
      })
      .map((flow) => of(flow, 'go'))
  }

  #perform(choice: Choice, enabled: readonly Pending[]): void {
    const { flow } = choice
    const session = this.#sessions[flow] as Session
    const pending = enabled.find((one) => one.choice.flow === flow) as Pending
    const before = this.#database.inTransaction(flow) ? 'T' : 'I'
    const step: Writable<Step> = {
      index: this.#steps.length,
      flow,
      lane: 0,
      choice,
      half: session.half,
      statements: pending.statements,
      parameters: [],
      before,
      after: before,
      waitedFor: [],
      answer: { rowCount: 0 },
      footprint: none,
      pid: flow,
    }
    this.#steps.push(step)
    if (choice.action === 'victim') return this.#kill(flow, step)
    if (choice.action === 'crash') return this.#crash(flow, step)
    const statement = session.statement as Statement
    if (session.half === 'commit') {
      step.footprint = { ...none, ...ending(this.#database.ends(flow, 'commit')) }
      this.#database.commit(flow)
      session.half = 'whole'
      if (choice.action === 'lose-answer') session.outcome = { kind: 'crashed' }
      else this.#advance(flow, (generator) => generator.next(session.held))
    } else {
      const touches = this.#database.touches(flow, statement)
      const ends =
        statement.op === 'commit' || statement.op === 'rollback'
          ? this.#database.ends(flow, statement.op)
          : undefined
      const isolation = this.#database.isolation(flow)
      step.footprint = { opaque: false, touches, isolation, ...ending(ends) }
      const failing = this.#database.ends(flow, 'rollback')
      const outcome = this.#database.execute(flow, statement)
      if (outcome === 'waits') {
        session.waiting = step
        step.waitedFor = [...new Set(this.#database.waitsFor(flow))]
        if (choice.action === 'lose-answer') this.#crash(flow, step)
      } else {
        this.#settle(flow, step, outcome, failing)
        if (choice.action === 'lose-answer' && session.outcome === undefined)
          this.#crash(flow, step)
      }
    }
    step.after = this.#database.inTransaction(flow) ? 'T' : 'I'
    this.#resume(step)
  }

  /** A statement came to its end, at once or after it had waited. */
  #settle(flow: number, step: Writable<Step>, outcome: Outcome, failing: Footprint['ends']): void {
    const session = this.#sessions[flow] as Session
    if (outcome === 'waits') throw new Error('a statement that was woken waits again')
    if ('error' in outcome) {
      step.answer = { rowCount: 0, error: { sqlstate: outcome.error.sqlstate, message: '' } }
      step.footprint = { ...step.footprint, ...ending(failing) }
      this.#advance(flow, (generator) => generator.throw(outcome.error))
      return
    }
    step.answer = { rowCount: 1, rows: [[String(outcome.answer)]] }
    const { op } = session.statement as Statement
    const explicit = this.#database.inTransaction(flow)
    if (explicit || op === 'commit' || op === 'rollback' || op === 'begin') {
      this.#advance(flow, (generator) => generator.next(outcome.answer))
    } else if (this.#options.atomic === true) {
      step.footprint = { ...step.footprint, ...ending(this.#database.ends(flow, 'commit')) }
      this.#database.commit(flow)
      this.#advance(flow, (generator) => generator.next(outcome.answer))
    } else {
      step.half = 'execute'
      session.half = 'commit'
      session.held = outcome.answer
    }
  }

  #resume(after: Step): void {
    for (;;) {
      const failing = this.#sessions.map((_, flow) => this.#database.ends(flow, 'rollback'))
      const woken = this.#database.resume()
      if (woken === undefined) return
      const session = this.#sessions[woken.session] as Session
      const step = session.waiting as Writable<Step>
      session.waiting = undefined
      step.resumedAfter = after.index
      this.#settle(woken.session, step, woken.outcome, failing[woken.session])
    }
  }

  #findCircle(): void {
    this.#circle = []
    for (const flow of this.#sessions.keys()) {
      const circle = this.#database.circle(flow)
      if (circle.length === 0) continue
      this.#deadlocks++
      if (this.#options.deadlock === 'closer') {
        const closer = this.#steps.at(-1) as Writable<Step>
        this.#kill(closer.flow, closer)
        return this.#findCircle()
      }
      this.#circle = circle
      return
    }
  }

  /** A flow dies of a deadlock; `step` is the choice of it, or the step that closed the circle. */
  #kill(flow: number, step: Writable<Step>): void {
    const session = this.#sessions[flow] as Session
    const waiting = session.waiting as Writable<Step>
    const ends = this.#database.ends(flow, 'rollback')
    const error = { sqlstate: '40P01', message: 'deadlock detected' }
    waiting.answer = { rowCount: 0, error }
    waiting.footprint = { ...waiting.footprint, ...ending(ends) }
    waiting.resumedAfter = step.index
    if (step !== waiting) {
      step.answer = waiting.answer
      step.footprint = { ...none, ...ending(ends) }
    }
    session.waiting = undefined
    this.#database.abort(flow)
    step.after = 'I'
    this.#advance(flow, (generator) => generator.throw(new ModelError('40P01')))
    this.#resume(step)
  }

  #crash(flow: number, step: Writable<Step>): void {
    const session = this.#sessions[flow] as Session
    step.footprint = {
      ...step.footprint,
      ...ending(step.footprint.ends ?? this.#database.ends(flow, 'rollback')),
    }
    session.waiting = undefined
    session.outcome = { kind: 'crashed' }
    this.#database.abort(flow)
    this.#resume(step)
  }

  #advance(
    flow: number,
    go: (generator: Session['generator']) => IteratorResult<Statement, number>,
  ): void {
    const session = this.#sessions[flow] as Session
    session.half = 'whole'
    session.place++
    try {
      const result = go(session.generator)
      session.statement = result.done ? undefined : result.value
      if (result.done) session.outcome = { kind: 'returned', value: String(result.value) }
    } catch (error) {
      if (!(error instanceof ModelError)) throw error
      session.statement = undefined
      session.outcome = {
        kind: 'threw',
        name: 'ModelError',
        message: error.message,
        sqlstate: error.sqlstate,
        said: saidByError(error, error.sqlstate),
      }
    }
  }
}

const none: Footprint = { opaque: false, touches: [], isolation: 'read committed' }

function ending(ends: Footprint['ends']): Pick<Footprint, 'ends'> {
  return ends === undefined ? {} : { ends }
}
