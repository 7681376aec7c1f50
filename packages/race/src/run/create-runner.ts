import { orAsOne } from '../core/as-one.ts'
import type { Span } from '../core/facts.ts'
import type { Cast, FlowOutcome, KnownTable, Run, Runner, Trouble } from '../core/model.ts'
import { traceCalls } from '../gate/call-places.ts'
import { readStamp } from './catalogue/catalogue.ts'
import { connectControl } from './connection/control.ts'
import { openClone } from './state/clone.ts'
import { endFact, type FindKeys, unreadNotes, unseenNotes } from './state/end-facts.ts'
import { tablesPutBack } from './state/exact-seed.ts'
import { createStateReader, type StateReader } from './state/final-state.ts'
import { createFootprintReader } from './footprint/footprint-reader.ts'
import { withDatabase } from './connection/database-context.ts'
import type { RunnerOptions } from './options.ts'
import { outcomeText } from './answer/outcome-text.ts'
import type { Decide } from './play/choices.ts'
import type { ScheduleSetting } from './play/play.ts'
import { type Played, playSchedule } from './play/schedule.ts'
import { createSeedCheck } from './state/seed-check.ts'
import {
  forgetLatecomers,
  latecomerTrouble,
  lend,
  waitForLatecomer,
} from './connection/latecomers.ts'
import { RestoreError } from './state/restore-error.ts'
import { openRestoreState } from './state/restore-state.ts'
import { readKnownTables } from './catalogue/known-tables.ts'
import { readServer } from './catalogue/server-facts.ts'
import { withoutSessions } from './connection/sessions.ts'
import { sharedConnections } from './connection/shared-connections.ts'
import { createStage, type Stage } from './connection/stage.ts'
import { loadParser } from './statement/statement-tree.ts'
import { takeDatabase } from './connection/turn.ts'
import { tidyUp } from './play/tidy-up.ts'
import { createWatch, GivenUp, type Limit, type Watch } from './connection/watch.ts'

/** A runner with its connections; `close` gives them back. */
export interface LiveRunner extends Runner, AsyncDisposable {
  /** The server's version, for the head of a report. */
  readonly server: string
  /** The tables as they were before a run that was to be reported. */
  known(): readonly KnownTable[] | undefined
  /** Waits a moment for flows that go on after they have ended, and says which one does. */
  latecomer(): Promise<Trouble | undefined>
  close(): Promise<void>
}

/** Opens what is needed to run the flows again and again on a real server. */
export async function createRunner(options: RunnerOptions): Promise<LiveRunner> {
  const opened: Closing[] = []
  try {
    return await open(options, opened)
  } catch (error) {
    await closeAll(opened)
    throw error
  }
}

type Closing = () => Promise<void>

/** The last that was opened first, and each of them, whatever becomes of the others. */
async function closeAll(opened: Closing[]): Promise<void> {
  const last = opened.pop()
  try {
    await last?.()
  } finally {
    if (last) await closeAll(opened)
  }
}

/** `opened` is told how to close what was opened. */
async function open(options: RunnerOptions, opened: Closing[]): Promise<LiveRunner> {
  const names = Object.keys(options.flows)
  const flows = Object.values(options.flows)
  await loadParser()
  const clone = options.state === 'clone' ? await openClone(options.url) : undefined
  if (clone) opened.push(clone.close)
  const url = clone?.url ?? options.url
  const control = await connectControl(url)
  opened.push(control.close)
  if (!clone) await takeDatabase(control)
  const hangMs = options.limits?.hangMs ?? 5000
  const limitMs = Math.max(options.limits?.codeMs ?? 20_000, hangMs)
  const watch = createWatch(url, control, hangMs)
  /** What kept the exploration from beginning. */
  let hindrance: Trouble | undefined
  let known: readonly KnownTable[] | undefined
  const stages: Stage[] = []
  const kept =
    options.state === 'restore'
      ? await openRestoreState(url, control, watch, hangMs, () => leaveAll(stages)).catch(
          (error: unknown) => {
            hindrance = troubleOf(error)
            return undefined
          },
        )
      : undefined
  if (kept) opened.push(kept.close)
  const server = await readServer(control)
  const reader = await createFootprintReader(control, options.functions)
  const stage = await createStage(url, names.length, server.startOptions)
  stages.push(stage)
  opened.push(stage.close)
  const putBack = tablesPutBack(options.seed)
  const states =
    options.oracle === false
      ? undefined
      : watched(watch, createStateReader(control, options.oracle ?? {}, putBack))
  const limit = (kind: Trouble['kind']): Limit => ({ ms: limitMs, kind })
  const seed = async (): Promise<void> => {
    await kept?.restore()
    if (clone) {
      const sessions = [...stage.connections(), ...clone.borrowed()]
      await withoutSessions(sessions, () => control.away(clone.renew))
    }
    const { seed: fill } = options
    if (!fill) return
    await withDatabase(control, (database) =>
      watch.over({
        name: 'The seed',
        // It uses no client of the flows: what they send meanwhile is theirs.
        do: async () => (putBack ? fill(database) : lend(async () => fill(database))),
        limit: limit('seed-failed'),
      }),
    )
  }
  const seedAgain =
    options.seed || options.state
      ? async (): Promise<void> => {
          await seed()
          await states?.start(await reader.prepare())
        }
      : undefined
  // Without an oracle too: an invariant would be held to what the runs before have left.
  const checked = states ?? (seedAgain ? undefined : watched(watch, createStateReader(control, {})))
  const by = options.seed ? 'seed' : options.state
  const seeds = checked && createSeedCheck(checked, by, seedAgain)
  const setting: ScheduleSetting = {
    names,
    flows,
    stage,
    control,
    reader,
    isolation: server.isolation,
    classify: options.outcome,
    split: options.autocommit !== 'atomic',
    victims: options.victims ?? 'choose',
    steps: options.limits?.steps ?? 500,
    graceMs: options.limits?.graceMs ?? 25,
    hangMs,
    meetings: new Set(),
  }

  async function run(decide: Decide, cast?: Cast): Promise<Run> {
    if (hindrance) return withoutPlay(names.length, hindrance)
    try {
      const run = await Promise.race([runWatched(decide, cast), ...(kept ? [kept.stopped] : [])])
      return kept?.isStopping === true ? await kept.stopped : run
    } catch (error) {
      if (kept?.isStopping === true) return await kept.stopped
      const trouble = troubleOf(error)
      await control.client.query('ROLLBACK').catch(() => undefined)
      return withoutPlay(names.length, trouble)
    }
  }

  async function runWatched(decide: Decide, cast?: Cast): Promise<Run> {
    const from = Date.now()
    try {
      await seed()
    } catch (error) {
      if (error instanceof GivenUp || error instanceof RestoreError) throw error
      await control.client.query('ROLLBACK').catch(() => undefined)
      const message = error instanceof Error ? error.message : String(error)
      return withoutPlay(names.length, {
        kind: 'seed-failed',
        message: `The ${options.seed ? 'seed' : 'restore'} failed: ${message}`,
      })
    }
    const stamp = await reader.prepare()
    await checked?.start(stamp)
    const trouble = await seeds?.look()
    if (trouble) {
      const late =
        trouble.kind === 'seed-differs' ? latecomerTrouble(names, 'suspected') : undefined
      return withoutPlay(names.length, late ?? trouble)
    }
    if (cast?.places === true && cast.serial !== true) {
      known ??= await readKnownTables(control)
    }
    const stop = cast?.places === true ? traceCalls() : undefined
    const played = await playSchedule(setting, decide, cast).finally(stop)
    const lasting = await tidyUp(setting, played)
    if (played.failure) throw played.failure
    await recover(played)
    const isOpen = lasting !== undefined && options.functions !== 'atomic'
    const run = await look(isOpen ? { uncontrolled: leftBy(names[lasting]), ...played } : played, {
      from,
      to: Date.now(),
    })
    const late = latecomerTrouble(names)
    return late && !run.trouble ? { ...run, trouble: late } : run
  }

  async function recover(played: Played): Promise<void> {
    if (!options.recover || played.trouble) return
    for (const [flow, outcome] of played.outcomes.entries()) {
      const wing = stage.wings[flow]
      const name = names[flow]
      if (outcome.kind !== 'crashed' || !played.spent.includes(flow)) continue
      if (!wing || name === undefined) continue
      // Nobody attends: what it sends passes at once, like the statements of a restarted process.
      const { signal } = new AbortController()
      const step = async (): Promise<void> => undefined
      const { url, pool } = wing
      const context = { flow: name, url, pool, traceparent: '', signal, step }
      const { recover: mend } = options
      await watch.over({
        name: `The recovery of ${name}`,
        do: () =>
          lend(async () => mend(context, name)).catch((cause) => failedRecovery(name, cause)),
        limit: limit('hung-flow'),
      })
    }
  }

  async function look(played: Played, span: Span): Promise<Run> {
    const { steps, decisions, outcomes, deadlocks, uncontrolled, trouble, notes } = played
    const base = {
      steps,
      decisions,
      outcomes,
      deadlocks,
      notes,
      ...(uncontrolled !== undefined && { uncontrolled }),
    }
    if (trouble) return { ...base, trouble, state: '', digest: '', tables: [] }
    // Tables that the flows made, dropped or altered.
    const altered = steps.some(({ footprint }) => footprint.opaque)
    const state = await states?.read(span, altered ? await readStamp(control) : undefined)
    const ends = outcomes.map((outcome) => endFact(outcome, state?.findKeys ?? noKeys))
    const texts = outcomes.map((outcome, flow) => outcomeText(outcome, ends[flow] ?? null, span))
    const violation = await violationOf(outcomes)
    return {
      ...base,
      state: state?.text ?? '',
      digest: JSON.stringify([state?.text ?? '', ...texts]),
      tables: state?.tables ?? [],
      notes: state
        ? [...notes, ...unseenNotes(outcomes), ...unreadNotes(state.unread, steps)]
        : notes,
      facts: { span, tables: state?.facts ?? [], ends },
      ...(violation !== undefined && { violation }),
    }
  }

  async function violationOf(outcomes: readonly FlowOutcome[]): Promise<string | undefined> {
    const { invariant } = options
    if (!invariant) return undefined
    const byName = Object.fromEntries(
      names.map((name, flow) => [name, outcomes[flow] ?? ({ kind: 'unfinished' } as const)]),
    )
    try {
      await withDatabase(control, (database) =>
        watch.over({
          name: 'The invariant',
          do: () => lend(async () => invariant({ ...database, outcomes: byName })),
          limit: limit('hung-flow'),
        }),
      )
      return undefined
    } catch (error) {
      if (error instanceof GivenUp) throw error
      return error instanceof Error ? error.message : String(error)
    }
  }

  forgetLatecomers()
  const close = (): Promise<void> => closeAll(opened)
  return {
    flows: names,
    server: server.version,
    known: () => known,
    run,
    latecomer: () => waitForLatecomer(names),
    close,
    [Symbol.asyncDispose]: close,
  }
}

function leftBy(name: string | undefined): string {
  return `Code that ${name ?? 'a flow'} runs in the database may leave something in its session, such as a setting, a temporary table or a lock, and its client keeps the session from run to run. Use cx.pool, whose sessions are new then, set it for the transaction only (set_config(…, true)), or ${orAsOne}.`
}

const noKeys: FindKeys = () => ({ keys: [], certain: false })

/** Reading the tables waits for locks as well. */
function watched(watch: Watch, states: StateReader): StateReader {
  const name = 'The look at the tables'
  return {
    start: (stamp) => watch.over({ name, do: () => states.start(stamp) }),
    columns: () => watch.over({ name, do: states.columns }),
    isPutBack: states.isPutBack,
    read: (span, stamp) => watch.over({ name, do: () => states.read(span, stamp) }),
  }
}

function failedRecovery(name: string, cause: unknown): never {
  const message = cause instanceof Error ? cause.message : String(cause)
  throw new Error(`crash.recover failed for ${name}: ${message}`, { cause })
}

/** Ends what flows have under way, for good; tells which sessions are to be ended on the server. */
function leaveAll(stages: readonly Stage[]): number[] {
  const inUse = [...sharedConnections].filter(
    ({ phase, state }) => phase !== 'idle' || state !== 'I',
  )
  return [...stages.flatMap((stage) => stage.leave()), ...inUse.map(({ pid }) => pid)]
}

/** What was given up is told as trouble; everything else is thrown on. */
function troubleOf(error: unknown): Trouble {
  if (error instanceof GivenUp) return error.trouble
  throw error
}

/** A run that was not begun. */
function withoutPlay(flows: number, trouble: Trouble): Run {
  return {
    steps: [],
    decisions: [],
    outcomes: Array.from({ length: flows }, () => ({ kind: 'unfinished' })),
    state: '',
    digest: '',
    tables: [],
    deadlocks: 0,
    notes: [],
    trouble,
  }
}
