import { withClient } from '@holdfast/testkit'
import type { Report } from '../../packages/race/src/core/model.ts'
import { explore } from '../../packages/race/src/explore.ts'
import { explainRace } from '../../packages/race/src/report/explain-race.ts'
import type { FlowContext } from '../../packages/race/src/run/options.ts'
import { loadClient, type OpenDb } from './clients.ts'
import { entryNamed } from './entries.ts'
import { startHttpStage } from './over-http.ts'
import { createKit, type Origins, setUp, textsOf } from './kit.ts'
import type { Ask, Db, Entry, Play, Row } from './model.ts'
import { wrongStory } from './stories.ts'
import type { Task, Variant } from './variants.ts'

/** What the explorer said of a task. */
export interface Said {
  readonly verdict: Report['verdict']
  readonly milliseconds: number
  readonly schedules: number
  /** The failure, the trouble or the notes, for people. */
  readonly message: string
  /** What is wrong with the story of a race. */
  readonly story?: string
}

/** Generous: 400 ms of waiting in each of some dozens of runs. */
const budget = { ms: 60_000 }

/** Explores one task on a database that is the caller's alone. */
export async function exploreTask(url: string, task: Task, origins: Origins): Promise<Said> {
  const { variant } = task
  const entry = entryNamed(task.entry)
  const written = textsOf(entry, variant)
  const tables = await withClient(url, (client) =>
    setUp(
      entry,
      variant,
      async (text, ...values) => (await client.query<Row>(text, [...values])).rows,
    ),
  )
  const warm = firstUse(variant.cache)
  const plays: Readonly<Record<string, Play>> =
    typeof entry.flows === 'function' ? { a: entry.flows, b: entry.flows } : entry.flows
  const serve = async (db: OpenDb, who: string): Promise<unknown> => {
    await warm(db)
    return await plays[who]?.(createKit(entry, variant, db, { who, origins }))
  }
  await using stage =
    variant.place === 'http'
      ? await startHttpStage(variant.client, url, serve)
      : directStage(await loadClient[variant.client](), serve)
  const started = performance.now()
  const report = await explore({
    url,
    name: entry.name,
    rng: task.seed,
    budget,
    seed: async ({ query }) => {
      if (tables.length > 0) await query(`TRUNCATE ${tables.join(', ')}`)
      for (const text of entry.rows) await query(written(text))
    },
    flows: Object.fromEntries(
      Object.keys(plays).map((who) => [who, (context: FlowContext) => stage.ask(who, context)]),
    ),
    onProgress: () => undefined,
    ...(entry.deadlocks && { deadlocks: entry.deadlocks }),
  })
  return {
    verdict: report.verdict,
    milliseconds: Math.round(performance.now() - started),
    schedules: report.coverage.schedules,
    message: messageOf(report),
    ...storyOf(entry, report),
  }
}

/** Each flow with a client of its own, kept from run to run. */
function directStage(
  openClient: (reach: FlowContext) => Promise<OpenDb>,
  serve: (db: OpenDb, who: string) => Promise<unknown>,
): AsyncDisposable & { ask(who: string, context: FlowContext): Promise<unknown> } {
  const open = new Map<string, Promise<OpenDb>>()
  return {
    async ask(who, context) {
      const opened = open.get(who) ?? openClient(context)
      open.set(who, opened)
      return await serve(await opened, who)
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.allSettled([...open.values()].map(async (opened) => (await opened).end()))
    },
  }
}

/** Steps without a line are those of a client that sends several statements together. */
function storyOf({ name, racy }: Entry, report: Report): Pick<Said, 'story'> {
  const told = explainRace(report)
  if (told === undefined || !racy) return {}
  const lost = report.failure?.run.steps.find(
    ({ from, half, statements }) =>
      from === undefined && half !== 'commit' && /FROM|INTO|UPDATE/.test(statements.join()),
  )
  const story =
    wrongStory(name, told) ??
    (lost && `nobody knows which line sent (${lost.index + 1}) ${lost.statements.join('; ')}`)
  return story === undefined ? {} : { story }
}

function messageOf({ failure, trouble, notes }: Report): string {
  if (failure === undefined) {
    return trouble?.message ?? notes.map(({ message }) => message).join(' ')
  }
  const order = failure.run.steps.map(({ flow }) => 'abcdef'[flow]).join('')
  return `${failure.message} (order ${order}, replayed ${failure.reproduced.join(' of ')})`
}

/** A look at the server that is kept for the life of the process, as libraries and services have them. */
function firstUse(cache: Variant['cache']): (db: Db) => Promise<unknown> {
  let known: Promise<unknown> | undefined
  let value: unknown
  const look = (ask: Ask): Promise<unknown> => ask('SELECT version() AS version')
  if (cache === 'promise') return (db) => (known ??= look(db.ask))
  if (cache === 'none') return () => Promise.resolve()
  return async (db) => (value ??= await look(db.ask))
}
