/** `hunt -- <command>`: records the command, has its calls proven, hands over what was found. */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { deserialize, serialize } from 'node:v8'
import { huntBaseline, newRaces } from '../hunt/report/baseline.ts'
import { keptOf } from '../hunt/environment.ts'
import { formatHunt } from '../hunt/report/format-hunt.ts'
import { huntAnnotations, huntSummary } from '../hunt/report/github-hunt.ts'
import { jsonHunt } from '../hunt/report/json-hunt.ts'
import { type HuntReport, timeOver } from '../hunt/model.ts'
import { named } from '../hunt/open-database.ts'
import { htmlHunt } from '../hunt/report/page/hunt-page.ts'
import { sarifHunt } from '../hunt/report/sarif-hunt.ts'
import { list, times } from '../report/words.ts'
import { connectControl, type Control } from '../run/connection/control.ts'
import { settleLeftover } from '../run/state/kept-snapshot.ts'
import { assertRestoreRights } from '../run/state/restore-rights.ts'
import { reasonOf } from '../run/connection/unreachable.ts'
import { databaseText, databaseUrl, isDatabaseUrl } from '../run/connection/url.ts'
import { changedFiles } from './changed-files.ts'
import { type HuntLine, huntUsage, Misused, readHuntLine } from './hunt-line.ts'
import { huntProgress } from './hunt-progress.ts'
import { runProver, runRecorded, Stopped } from './processes.ts'
import { writeTestFiles } from './write-test-files.ts'
import { openRecorder, type Origin, type Recording } from './recording.ts'
import { NobodyReads, type Surroundings } from './surroundings.ts'

/** What the exit codes say; `--help` tells them to users. */
const codes = {
  clean: 0,
  races: 1,
  misused: 2,
  nothingRecorded: 3,
  nothingDecided: 4,
  failed: 5,
} as const

/** Most calls that are kept of a command. */
const mostCalls = 300

/** Runs one command line and gives the exit code. */
export async function runHuntLine(args: readonly string[], around: Surroundings): Promise<number> {
  const { out, err } = around
  try {
    const line = readHuntLine(args)
    if (line === undefined) {
      out(huntUsage)
      return codes.clean
    }
    return await huntAsTold(line, around)
  } catch (error) {
    if (error instanceof Misused) {
      err(`${error.message}.\n\n${huntUsage}`)
      return codes.misused
    }
    if (error instanceof NobodyReads) return codes.clean
    if (error instanceof Stopped) {
      err(`holdfast-race hunt: ${error.message}\n`)
      return error.code
    }
    err(`holdfast-race hunt: ${reasonOf(error)}\n`)
    return codes.nothingDecided
  }
}

async function huntAsTold(line: HuntLine, around: Surroundings): Promise<number> {
  const { err } = around
  const asked = before(line)
  if (line.from === undefined) await lookAtDatabase(line, around)
  const { recording, origin, status, instead } = line.from
    ? recordingFrom(line.from, line, around)
    : await recordCommand(line, around)
  if (status > 128) return status
  if (line.keep !== undefined) writeFileSync(line.keep, serialize(recording), { mode: 0o600 })
  if (recording.calls.length === 0 || origin === undefined) {
    err(
      nothingRecorded({
        recording,
        instead,
        database: origin?.url ?? line.url ?? around.environment['DATABASE_URL'],
      }),
    )
    return codes.nothingRecorded
  }
  assertDatabase(recording, origin.url)
  const report = await prove(line, { recording, origin, since: asked.since }, around)
  writeTests(line, report, origin, around)
  return handOver(line, report, { known: asked.known, status, recording }, around)
}

/** What would be found out too late is asked before the command runs. */
function before({ app, baseline, since }: HuntLine): {
  readonly known: string | undefined
  readonly since: ReadonlySet<string> | undefined
} {
  if (!existsSync(app)) throw new Misused(`there is no file ${app}, which --app names`)
  if (baseline !== undefined && !existsSync(baseline)) {
    throw new Misused(`there is no file ${baseline}; --write-baseline ${baseline} makes it`)
  }
  return {
    known: baseline === undefined ? undefined : readFileSync(baseline, 'utf8'),
    since: since === undefined ? undefined : changedFiles(since),
  }
}

/** Of the database that is known by now: what keeps rows from being put back is told before the command runs. */
async function lookAtDatabase(
  { url }: HuntLine,
  { environment, err }: Surroundings,
): Promise<void> {
  const known = url ?? environment['DATABASE_URL']
  if (known === undefined || known === '') return
  // The suite may have another one, in its own configuration.
  if (url === undefined && !isDatabaseUrl(known)) return
  const found = databaseUrl('hunt', known)
  let control: Control
  try {
    control = await connectControl(found)
  } catch (error) {
    // The command may be about to start it.
    err(`hunt: ${databaseText(found)} (${whence(url)}): ${reasonOf(error)}\n`)
    return
  }
  try {
    await named(found, async () => {
      await assertRestoreRights(control.client)
      await settleLeftover(control.client)
    })
  } finally {
    await control.close()
  }
}

function whence(url: string | undefined): string {
  return url === undefined ? 'DATABASE_URL' : '--url'
}

interface Recorded {
  readonly recording: Recording
  /** What the processes of the command did, if nothing is recorded. */
  readonly instead: string
  readonly origin: Origin | undefined
  /** How the command ended. */
  readonly status: number
}

async function recordCommand(
  { command, url }: HuntLine,
  { environment, err, programs }: Surroundings,
): Promise<Recorded> {
  await using recorder = await openRecorder({
    url,
    most: mostCalls,
    warn: (error) => void err(`\nhunt: nothing is recorded from here on: ${reasonOf(error)}\n`),
  })
  const own = { ...environment, ...(url !== undefined && { DATABASE_URL: url }) }
  const status = await runRecorded(command, own, {
    recorder: programs.recorder,
    socket: recorder.path,
  }).catch((error: unknown) => {
    throw new Misused(`the command could not be started: ${reasonOf(error)}`)
  })
  if (recorder.trouble) throw recorder.trouble
  const recording = recorder.recorded()
  const { origin } = recorder
  const where = origin ? `, with the rows of ${databaseText(origin.url)}` : ''
  err(`\nhunt: ${times(recording.calls.length, 'call')} recorded${where}\n`)
  const { NODE_OPTIONS } = environment
  return {
    recording: { ...recording, ...(origin && { environment: keptOf(origin.environment, own) }) },
    status,
    instead: recorder.instead(),
    // As it was in the process that was called, without what makes it record.
    origin: origin && { ...origin, environment: { ...origin.environment, NODE_OPTIONS } },
  }
}

function recordingFrom(
  file: string,
  { url }: HuntLine,
  { environment, err }: Surroundings,
): Recorded {
  const recording = deserialize(readFileSync(file)) as Recording
  const { values = {}, withheld = [] } = recording.environment ?? {}
  const missing = withheld.filter((name) => environment[name] === undefined)
  if (missing.length > 0) {
    err(
      `hunt: the recording was made with variables whose values are not kept: ${list(missing)}. Set them, or calls that need them are in no pair\n`,
    )
  }
  const found = databaseUrl('hunt', url ?? environment['DATABASE_URL'])
  return {
    recording,
    status: 0,
    instead: file,
    origin: { url: found, environment: { ...environment, ...values } },
  }
}

async function prove(
  { app, only, since: ref, seconds, elsewhere, refused, functions }: HuntLine,
  {
    recording,
    origin,
    since,
  }: {
    readonly recording: Recording
    readonly origin: Origin
    readonly since: ReadonlySet<string> | undefined
  },
  { programs, screen }: Surroundings,
): Promise<HuntReport> {
  const progress = huntProgress(screen)
  const task = {
    app,
    url: origin.url,
    recording,
    elsewhere,
    refused,
    functions,
    budget: { ms: 1_000 * seconds, pairMs: 10_000 },
    only,
    since: since && { ref: ref ?? '', files: since },
  }
  const environment = { ...origin.environment, DATABASE_URL: origin.url }
  try {
    return (await runProver(programs.prover, task, environment, progress.tell)) as HuntReport
  } finally {
    progress.end()
  }
}

function writeTests(
  { app, writeTests: folder, runner, command }: HuntLine,
  report: HuntReport,
  { environment }: Origin,
  { err }: Surroundings,
): void {
  if (folder === undefined) return
  for (const told of writeTestFiles(report, { app, folder, runner, command, environment }))
    err(`hunt: ${told}\n`)
}

function handOver(
  line: HuntLine,
  report: HuntReport,
  {
    known,
    status,
    recording,
  }: {
    readonly known: string | undefined
    readonly status: number
    readonly recording: Recording
  },
  { out, environment }: Surroundings,
): number {
  const proven = report.pairs.filter(({ verdict }) => verdict === 'proven')
  const fresh = known === undefined ? proven : newRaces(report, known)
  out(formatHunt(report))
  if (known !== undefined && proven.length > 0) {
    const old = proven.length - fresh.length
    out(`in the baseline: ${old} of ${times(proven.length, 'race')}\n`)
  }
  const files: readonly (readonly [string | undefined, () => string])[] = [
    [line.json, () => jsonHunt(report)],
    [line.html, () => htmlHunt(report)],
    [line.sarif, () => sarifHunt(report)],
    [line.writeBaseline, () => huntBaseline(report)],
  ]
  for (const [file, text] of files) if (file !== undefined) writeFileSync(file, text())
  if (environment['GITHUB_ACTIONS'] === 'true') {
    for (const annotation of huntAnnotations(report)) out(`${annotation}\n`)
    const summary = environment['GITHUB_STEP_SUMMARY']
    if (summary !== undefined) appendFileSync(summary, huntSummary(report))
  }
  if (fresh.length > 0) return codes.races
  if (isUndecided(report, line) || isMocked(report, recording)) return codes.nothingDecided
  return status === 0 ? codes.clean : codes.failed
}

/** Rows of a database that the suite does not use prove nothing, and may be those of somebody's work. */
function assertDatabase({ calls }: Recording, url: string): void {
  if (calls.some(({ others }) => others === undefined)) return
  const others = [...new Set(calls.flatMap((call) => call.others ?? []))]
  throw new Error(
    `the suite uses database ${list(others)}, and the hunt has the rows of ${databaseText(url)}. Give the address of the one that the suite uses with --url; if each worker has its own, run the suite in one worker (\`vitest run --no-file-parallelism\`, \`jest -i\`)`,
  )
}

/** Whether the suite has shown nothing of what the application does in a database. */
function isMocked({ pairs }: HuntReport, { isWithoutDatabase }: Recording): boolean {
  return isWithoutDatabase === true && pairs.length === 0
}

/** Whether nothing is known now that was not known before. */
function isUndecided({ calls, pairs }: HuntReport, { only }: HuntLine): boolean {
  if (calls.every(({ unusable }) => unusable !== undefined)) return true
  const asked = pairs.filter(
    ({ because, verdict }) => verdict !== 'not looked at' || because === timeOver,
  )
  if (only !== undefined && asked.length === 0) return true
  return (
    asked.length > 0 && asked.every(({ verdict }) => verdict !== 'proven' && verdict !== 'refuted')
  )
}

/** With the database that was meant, never its password, and with what there was in the place of calls. */
function nothingRecorded({
  recording: { notes },
  instead,
  database,
}: {
  readonly recording: Recording
  readonly instead: string
  readonly database: string | undefined
}): string {
  const isKnown = database !== undefined && URL.canParse(database)
  return `hunt: nothing was recorded: no request arrived at a server of node:http in a process of the command.
  There was instead: ${[instead, ...notes].join('; ')}.
  Its rows would have been those of ${isKnown ? databaseText(database) : 'the database in DATABASE_URL, which is not set'}.
  The suite has to send requests to a server in a process of Node that the command starts (supertest does), or use inject() of Fastify.
  app.request() of Hono, and handlers that are called as functions, send none: let the suite serve the application.
  What is no request is named by call() of '@holdfast/race/hunt'. See https://github.com/OWNER/REPOSITORY/blob/main/docs/race/hunt.md
`
}
