/** Makes runs and keeps count of them: what was spent, what was seen, what went wrong. */
import type { Cast, Note, Progress, Run, Runner, Step, Trouble } from '../core/model.ts'
import { isSerial } from './linear.ts'
import type { Policy } from './policy.ts'

export interface Budget {
  /** Runs, serial ones included; replays and shrinking not. */
  readonly schedules: number
  readonly ms: number
}

const uncounted: ReadonlySet<Progress['phase']> = new Set(['learn', 'shrink', 'replay'])

export class Tally {
  schedules = 0
  overlapped = false
  blockedEpisodes = 0
  deadlocks = 0
  /** Everything that happened was chosen, or would have been the same whatever was chosen. */
  controlled = true
  /** Of every run it could be told whether it is right. */
  decided = true
  /** Steps of the longest run. */
  longest = 0
  /** Runs that ended in trouble, and what it was the first time. */
  troubled = 0
  trouble: Trouble | undefined
  /** Told with every progress; the search sets it. */
  open = 0
  classes = 0
  bound: number | undefined
  /** Flows that did in some run what was asked for. */
  readonly accepted: Set<number> = new Set()
  readonly runner: Runner
  readonly #budget: Budget
  readonly #onProgress: ((progress: Progress) => void) | undefined
  readonly #notes = new Map<string, Note>()
  /** A step of some run did more than read, or nobody knows what it did. */
  #wrote = false
  readonly #started = performance.now()

  constructor(runner: Runner, budget: Budget, onProgress?: (progress: Progress) => void) {
    this.runner = runner
    this.#budget = budget
    this.#onProgress = onProgress
  }

  get milliseconds(): number {
    return performance.now() - this.#started
  }

  get notes(): readonly Note[] {
    return [...this.#notes.values()]
  }

  /** What to say where no run has a step that another could meet. */
  onlyReads(): readonly Note[] {
    if (this.#wrote) return []
    const message =
      'No flow writes or locks anything in any run: reads alone cannot race. Explore them together with a flow that changes what they read.'
    return [{ kind: 'only-reads', message }]
  }

  /** Each message is kept once. */
  note(note: Note): void {
    this.#notes.set(`${note.kind} ${note.message}`, note)
  }

  /** Of a run it cannot be told whether it is right. */
  doubt(why: string): void {
    this.decided = false
    this.note({ kind: 'undecided', message: why })
  }

  /** Whether a share of the budget, from 0 to 1, is used up. */
  spent(share = 1): boolean {
    return (
      this.schedules >= this.#budget.schedules * share ||
      this.milliseconds >= this.#budget.ms * share
    )
  }

  async run(policy: Policy, phase: Progress['phase'], cast?: Cast): Promise<Run> {
    const run = await this.runner.run(policy, cast)
    if (!uncounted.has(phase)) this.#count(run)
    this.#onProgress?.({
      phase,
      schedules: this.schedules,
      classes: this.classes,
      open: this.open,
      ...(this.bound === undefined ? {} : { bound: this.bound }),
      budget: this.#budget,
      milliseconds: this.milliseconds,
    })
    return run
  }

  #count(run: Run): void {
    this.schedules++
    this.deadlocks += run.deadlocks
    this.blockedEpisodes += run.steps.filter(({ waitedFor }) => waitedFor.length > 0).length
    this.longest = Math.max(this.longest, run.steps.length)
    this.overlapped ||= !isSerial(run) || overlaps(run.steps)
    for (const [flow, end] of run.outcomes.entries())
      if (end.kind === 'returned' && (end.said ?? 'accepted') === 'accepted')
        this.accepted.add(flow)
    this.#wrote ||= run.steps.some(
      ({ footprint: { opaque, touches } }) => opaque || touches.some(({ mode }) => mode !== 'read'),
    )
    for (const note of run.notes) {
      this.note(note)
      if (note.kind === 'unseen') this.decided = false
    }
    if (run.uncontrolled !== undefined) {
      this.controlled = false
      this.note({ kind: 'uncontrolled-wait', message: run.uncontrolled })
    }
    if (run.trouble === undefined) return
    this.troubled++
    this.trouble ??= run.trouble
  }
}

/** Whether a flow made a step while another's transaction was open. */
function overlaps(steps: readonly Step[]): boolean {
  const open = new Map<string, number>()
  for (const step of steps) {
    for (const flow of open.values()) if (flow !== step.flow) return true
    const lane = `${step.flow}.${step.lane}`
    if (step.after !== 'I' || step.half === 'execute') open.set(lane, step.flow)
    else open.delete(lane)
  }
  return false
}
