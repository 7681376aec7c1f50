import type { Cast, FlowOutcome, Footprint, Run, Runner, Trouble } from '../core/model.ts'
import { traceCalls } from '../gate/call-places.ts'
import { readStamp } from './catalogue.ts'
import type { Span } from './chance.ts'
import { connectControl, type Control } from './control.ts'
import { openClone } from './clone.ts'
import { createStateReader } from './final-state.ts'
import { createFootprintReader } from './footprint-reader.ts'
import type { DatabaseContext, RunnerOptions } from './options.ts'
import { outcomeText } from './outcome-text.ts'
import type { Decide } from './choices.ts'
import type { ScheduleSetting } from './play.ts'
import { type Played, playSchedule } from './schedule.ts'
import { createSeedCheck } from './seed-check.ts'
import { withoutSessions } from './sessions.ts'
import { levelNamed } from './session-setting.ts'
import { takeSnapshot } from './snapshot.ts'
import { createStage } from './stage.ts'
import { loadParser } from './statement-tree.ts'
import { takeDatabase } from './turn.ts'
import { tidyUp } from './tidy-up.ts'

/** A runner with its connections; `close` gives them back. */
export interface LiveRunner extends Runner, AsyncDisposable {
  /** The server's version, for the head of a report. */
  readonly server: string
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
  const snapshot = options.state === 'restore' ? await takeSnapshot(control) : undefined
  if (snapshot) opened.push(snapshot.restore)
  const server = await readServer(control)
  const reader = await createFootprintReader(control)
  const stage = await createStage(url, names.length, server.startOptions)
  opened.push(stage.close)
  const states =
    options.oracle === false ? undefined : createStateReader(control, options.oracle ?? {})
  const database = databaseContext(control)
  const seed = async (): Promise<void> => {
    await snapshot?.restore()
    if (clone) {
      const sessions = [...stage.connections(), ...clone.borrowed()]
      await withoutSessions(sessions, () => control.away(clone.renew))
    }
    await options.seed?.(database)
  }
  const seeds =
    states && (options.seed || options.state)
      ? createSeedCheck(states, async () => {
          await seed()
          await states.start(await reader.prepare())
        })
      : undefined
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
    hangMs: options.limits?.hangMs ?? 5000,
    meetings: new Set(),
  }

  async function run(decide: Decide, cast?: Cast): Promise<Run> {
    const from = Date.now()
    try {
      await seed()
    } catch (error) {
      await control.client.query('ROLLBACK').catch(() => undefined)
      const message = error instanceof Error ? error.message : String(error)
      return withoutPlay(names.length, {
        kind: 'seed-failed',
        message: `The seed failed: ${message}`,
      })
    }
    const stamp = await reader.prepare()
    await states?.start(stamp)
    const trouble = await seeds?.look()
    if (trouble) return withoutPlay(names.length, trouble)
    const stop = cast?.places === true ? traceCalls() : undefined
    const played = await playSchedule(setting, decide, cast).finally(stop)
    await tidyUp(setting, played)
    if (played.failure) throw played.failure
    await recover(played)
    return look(played, { from, to: Date.now() })
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
      await options.recover({ flow: name, url, pool, traceparent: '', signal, step }, name)
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
    const keys = state ?? { keyOf: () => undefined }
    const ends = outcomes.map((outcome) => outcomeText(outcome, keys, span))
    const violation = await violationOf(outcomes)
    return {
      ...base,
      state: state?.text ?? '',
      digest: JSON.stringify([state?.text ?? '', ...ends]),
      tables: state?.tables ?? [],
      ...(violation !== undefined && { violation }),
    }
  }

  async function violationOf(outcomes: readonly FlowOutcome[]): Promise<string | undefined> {
    if (!options.invariant) return undefined
    const byName = Object.fromEntries(
      names.map((name, flow) => [name, outcomes[flow] ?? ({ kind: 'unfinished' } as const)]),
    )
    try {
      await options.invariant({ ...database, outcomes: byName })
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  const close = (): Promise<void> => closeAll(opened)
  return { flows: names, server: server.version, run, close, [Symbol.asyncDispose]: close }
}

function databaseContext(control: Control): DatabaseContext {
  return {
    query: control.query,
    sql: (strings, ...values) => {
      const text = strings.reduce((before, after, index) => `${before}$${index}${after}`)
      return control.query(text, values)
    },
  }
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

interface ServerFacts {
  readonly version: string
  readonly isolation: Footprint['isolation']
  /** Time limits of the server's or the role's settings are switched off for the flows. */
  readonly startOptions: string
}

async function readServer(control: Control): Promise<ServerFacts> {
  const rows = await control.query(
    `SELECT name, reset_val AS setting FROM pg_catalog.pg_settings
     WHERE name IN ('server_version', 'default_transaction_isolation', 'statement_timeout',
                    'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`,
  )
  const settings = new Map(rows.map((row) => [String(row['name']), String(row['setting'])]))
  const level = settings.get('default_transaction_isolation')
  const limits = [...settings].filter(([name, value]) => name.endsWith('timeout') && value !== '0')
  return {
    version: `PostgreSQL ${settings.get('server_version')?.split(' ')[0] ?? ''}`,
    isolation: levelNamed(level ?? ''),
    startOptions: limits.map(([name]) => `-c ${name}=0`).join(' '),
  }
}
