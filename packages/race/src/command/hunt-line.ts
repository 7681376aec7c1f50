/** The command line of a hunt: what is said there, and what it means. */
import { parseArgs } from 'node:util'
import type { Functions } from '../hunt/engine.ts'
import { refusalRule } from '../hunt/edges/refusals.ts'

export const huntUsage = `Usage: npx @holdfast/race hunt --app <file> [flags] -- <command>

Runs your test suite once, as it is, and writes down the requests that arrive in its processes. Then
loads your application, sends every two of them at once in every order that can differ, and says
which of them race: proven on your database, or refuted. In the end rows are as your suite left them.

  npx @holdfast/race hunt --app src/app.ts -- npx vitest run

  --app <file>          The application: a file that exports it as \`app\`, or starts a server
  --url <url>           The database for tests, also for the command; else DATABASE_URL. Directly and
                        not through a pooler, by a role that may set session_replication_role
  --only <text>         Only pairs whose name has this in it: '/coupons'
  --since <git ref>     Only pairs with a statement from a file that has changed since then
  --seconds <n>         Time for the proofs; default 180. What it does not reach is told
  --refused <path=value>
                        Answers that say no with a status of 2xx, by their JSON: ok=false, error.code=FULL,
                        or error for those that have one. May be given several times
  --functions <how>     SQL functions and triggers: open (default), a pair for which it matters what
                        happens inside of them is undecided; atomic, each counts as one statement,
                        as code that is proven in another way
  --elsewhere <how>     Requests to other machines: recorded (default), answered as in the recording;
                        send, sent again every time

  --json <file>         The report as JSON
  --html <file>         The report as a page: all pairs, and the timeline of each race
  --sarif <file>        The races for code scanning
  --write-tests <dir>   A regression test for each race; files that are there stay as they are
  --runner <name>       What runs them: vitest, jest or node; default by the command, else
                        by package.json
  --baseline <file>     Fail only of races that are not in it
  --write-baseline <file>
                        Write the races that are there now
  --keep <file>         Keep the recording, with its rows and values
  --from <file>         Take such a recording instead of running a command
  --help                Print this

In GitHub Actions races stand beside the lines that make them, and in the summary of the job.

Exit codes: 0 no race that is not in the baseline, 1 races, 2 the command line was not understood,
3 no request was recorded, 4 requests were recorded and nothing could be proven or refuted,
5 no race, and the command itself failed. Ended by a signal: 128 and its number.
`

/** What was asked for. */
export interface HuntLine {
  readonly app: string
  /** Empty with `from`. */
  readonly command: readonly string[]
  readonly from?: string | undefined
  readonly keep?: string | undefined
  readonly url?: string | undefined
  readonly only?: string | undefined
  readonly since?: string | undefined
  readonly seconds: number
  readonly elsewhere: 'recorded' | 'send'
  readonly refused?: readonly string[] | undefined
  readonly functions: Functions
  readonly json?: string | undefined
  readonly html?: string | undefined
  readonly sarif?: string | undefined
  readonly baseline?: string | undefined
  readonly writeBaseline?: string | undefined
  readonly writeTests?: string | undefined
  readonly runner?: 'vitest' | 'jest' | 'node' | undefined
}

/** The command line was not understood; the message says why. */
export class Misused extends Error {}

/** Undefined if it asks for help. @throws Misused */
export function readHuntLine(args: readonly string[]): HuntLine | undefined {
  const at = args.indexOf('--')
  const command = at === -1 ? [] : args.slice(at + 1)
  const { values } = parse(at === -1 ? args : args.slice(0, at))
  if (values.help === true) return undefined
  const { app, from, elsewhere = 'recorded', functions = 'open', seconds = '180' } = values
  if (app === undefined) {
    throw new Misused('hunt needs your application: --app src/app.ts, a file that exports it')
  }
  if (from === undefined && command.length === 0) {
    throw new Misused('hunt needs the command that runs your tests, behind --: -- npx vitest run')
  }
  if (from !== undefined && command.length > 0) {
    throw new Misused('--from takes a recording in place of a command; pass one of the two')
  }
  if (elsewhere !== 'recorded' && elsewhere !== 'send') {
    throw new Misused('--elsewhere is recorded or send')
  }
  if (functions !== 'open' && functions !== 'atomic') {
    throw new Misused('--functions is open or atomic')
  }
  const { runner } = values
  if (runner !== undefined && runner !== 'vitest' && runner !== 'jest' && runner !== 'node') {
    throw new Misused('--runner is vitest, jest or node')
  }
  try {
    values.refused?.map(refusalRule)
  } catch (error) {
    throw new Misused(`--refused: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (!(Number(seconds) > 0)) throw new Misused('--seconds is a number above 0')
  return {
    ...values,
    app,
    command,
    elsewhere,
    functions,
    seconds: Number(seconds),
    runner,
    writeBaseline: values['write-baseline'],
    writeTests: values['write-tests'],
  }
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const
  try {
    return parseArgs({
      args: [...args],
      options: {
        app: text,
        url: text,
        only: text,
        since: text,
        seconds: text,
        elsewhere: text,
        refused: { type: 'string', multiple: true },
        functions: text,
        json: text,
        html: text,
        sarif: text,
        'write-tests': text,
        runner: text,
        baseline: text,
        'write-baseline': text,
        keep: text,
        from: text,
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new Misused(message.split(/\.\s|\n/)[0])
  }
}
