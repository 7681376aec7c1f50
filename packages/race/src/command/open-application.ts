/** The application that `--app` names, in a process of its own: every copy of pg under control, and nothing sent elsewhere. */
import { Server } from 'node:http'
import { createRequire, setSourceMapsSupport } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { type Outside, watchElsewhere } from '../hunt/record/elsewhere.ts'
import { sendToHandler } from '../hunt/record/fetch-handler.ts'
import { type Heard, keptHere } from '../hunt/record/heard.ts'
import { createServers, type Servers } from '../hunt/record/http-server.ts'
import type { Input, Send } from '../hunt/model.ts'
import { listenerOf } from '../hunt/record/open-recording.ts'
import type { Classify } from '../run/answer/said.ts'
import { instrument, type PgModule } from '../run/connection/instrument.ts'
import { type Application, loadApplication } from './app-module.ts'

/** What is to be opened. Plain data. */
export interface Opening {
  /** The file that `--app` names. */
  readonly app: string
  readonly url: string
  readonly elsewhere: 'recorded' | 'send'
  /** What other machines have answered in the recording. */
  readonly heard: readonly Heard[]
}

export interface OpenApplication extends AsyncDisposable {
  readonly outcome: Classify | undefined
  /** Undefined if everything is sent. */
  readonly outside: Outside | undefined
  /** What answers a call of this name; undefined if nothing does. */
  sendOf(name: string, kind: Input['kind']): Send | undefined
}

export async function openApplication({
  app,
  url,
  elsewhere,
  heard,
}: Opening): Promise<OpenApplication> {
  // What a build has made is told of by the lines that people write.
  setSourceMapsSupport(true)
  for (const one of copiesOfPg(app)) instrument(one)
  const servers = createServers()
  let outside: ReturnType<typeof watchElsewhere> | undefined
  if (elsewhere === 'recorded') {
    const kept = keptHere([...heard])
    outside = watchElsewhere({ isWithin: () => false, ownMachine: false, heard: kept })
    outside.close(url)
  }
  const application = await loadApplication(app)
  const answers = answeringOf(application, servers)
  return {
    outcome: application.outcome,
    outside,
    sendOf: (name, kind) => (kind === 'http' ? answers : named(application.calls, name)),
    [Symbol.asyncDispose]: () => servers[Symbol.asyncDispose](),
  }
}

/** The application's own one, and those of adapters that bring one along. */
function copiesOfPg(app: string): readonly PgModule[] {
  const base = pathToFileURL(resolve(app))
  const from = (folder: URL | string, name: string): unknown => {
    try {
      return createRequire(folder)(name)
    } catch {
      return undefined
    }
  }
  const adapters = ['@prisma/adapter-pg', 'drizzle-orm', 'kysely', 'typeorm', 'knex', 'sequelize']
  const places = adapters.flatMap((name) => {
    try {
      return [createRequire(base).resolve(name)]
    } catch {
      return []
    }
  })
  const found = [base, ...places].map((folder) => from(folder, 'pg') as PgModule | undefined)
  return [pg, ...found.filter((one) => one !== undefined)]
}

function answeringOf({ fetch, listener, server }: Application, servers: Servers): Send | undefined {
  if (fetch) return sendToHandler(fetch)
  if (server) return servers.sendTo(server)
  return listener && servers.sendTo(new Server(listenerOf(listener)))
}

function named(calls: Application['calls'], name: string): Send | undefined {
  const run = Object.hasOwn(calls, name) ? calls[name] : undefined
  return (
    run &&
    (async (input) =>
      run(...((input.kind === 'arguments' ? structuredClone(input.values) : []) as never[])))
  )
}
