import { parseArgs } from 'node:util'
import { packageVersion } from '../core/package-files.ts'
import { runDemo } from '../demo/run-demo.ts'
import { reasonOf } from '../run/connection/unreachable.ts'
import { databaseUrl } from '../run/connection/url.ts'
import { runHuntLine } from './run-hunt-line.ts'
import { NobodyReads, type Surroundings } from './surroundings.ts'

const usage = `Usage: npx @holdfast/race hunt --app <file> [flags] -- <command>
       npx @holdfast/race demo --url <database> [flags]

hunt runs your test suite once and proves which of its requests race; see hunt --help.

demo

Shows a race: two uploads at 99 of 100, each of which counts, checks and inserts. Then shows that
the fix is free of it. Works in a schema of its own, which it drops at the end.

  --url <url>   The database, directly and not through a pooler. Other users of the
                machine can see it: better set DATABASE_URL
  --out <file>  Where the page with the picture is written; default a temporary file
  --open        Open the page
  --help        Print this
  --version     Print the version

Exit codes: 0 the race was found and the fix is free of it, 1 something else came out or the
database could not be used, 2 the command line was not understood.
`

const done = 0
const failed = 1
const misused = 2

/** Runs one command line and gives the exit code. Never throws. */
export async function runCommandLine(
  args: readonly string[],
  around: Surroundings,
): Promise<number> {
  const { environment, out, err, explore } = around
  const [first, ...others] = args
  if (first === 'hunt') return runHuntLine(others, around)
  let flags: ReturnType<typeof readFlags>
  try {
    flags = readFlags(args)
  } catch (error) {
    err(
      `${error instanceof Error ? error.message.split(/\.\s|\n/)[0] : String(error)}.\n\n${usage}`,
    )
    return misused
  }
  const { values, positionals } = flags
  if (values.help === true) return say(out, usage)
  if (values.version === true) return say(out, `${packageVersion()}\n`)
  const [command, ...rest] = positionals
  if (command !== 'demo' || rest.length > 0) {
    err(
      `${command === undefined ? 'A command is needed' : 'The commands are hunt and demo'}.\n\n${usage}`,
    )
    return misused
  }
  const url = values.url ?? environment['DATABASE_URL']
  if (url === undefined || url === '') {
    err(`demo needs a database: pass --url or set DATABASE_URL.\n\n${usage}`)
    return misused
  }
  try {
    databaseUrl('demo', url)
    return (await runDemo({ url, out: values.out, open: values.open, print: out, explore }))
      ? done
      : failed
  } catch (error) {
    if (error instanceof NobodyReads) return done
    err(`holdfast-race demo: ${reasonOf(error)}\n`)
    return failed
  }
}

function readFlags(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      url: { type: 'string' },
      out: { type: 'string' },
      open: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean' },
    },
    allowPositionals: true,
  })
}

function say(out: Surroundings['out'], text: string): number {
  out(text)
  return done
}
