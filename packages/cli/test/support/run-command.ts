import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { run } from '../../src/run.ts'
import { paintFor } from '../../src/terminal/paint.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const fromSource = new URL('../../../holdfast/test/support/from-source.ts', import.meta.url).href

/** What starts the command, without its arguments. */
export const command: readonly string[] = [process.execPath, '--import', fromSource, main]

export interface Result {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** An environment with nothing of ours in it but what is given. */
export function environmentWith(more: Record<string, string>): Record<string, string | undefined> {
  const ours = ['DATABASE_URL', 'HOLDFAST_DATABASE_URL', 'HOLDFAST_SCHEMA', 'HOLDFAST_CONFIG']
  const inherited = Object.entries(process.env).filter(([name]) => !ours.includes(name))
  return { ...Object.fromEntries(inherited), ...more }
}

/** Runs a command line in this process, which is faster; nobody looks at a terminal. */
export async function runCommand(
  args: readonly string[],
  environment: Record<string, string> = {},
  folder = '/',
): Promise<Result> {
  let out = ''
  let err = ''
  const code = await run(args, {
    environment,
    folder,
    stopSignal: () => new AbortController().signal,
    onSignals: () => () => undefined,
    out: (text) => (out += text),
    err: (text) => (err += text),
    terminal: {
      isTerminal: false,
      isTold: false,
      paint: paintFor(false, environment),
      size: () => ({ columns: 100, rows: 40 }),
    },
  })
  return { code, out, err }
}

/** Runs it as a process. */
export function runProcess(
  args: readonly string[],
  environment: Record<string, string> = {},
  cwd?: string,
): Promise<Result> {
  const [program = '', ...before] = command
  return new Promise((resolve) => {
    execFile(
      program,
      [...before, ...args],
      { env: environmentWith(environment), ...(cwd === undefined ? {} : { cwd }) },
      (error, out, err) => resolve({ code: Number(error?.code ?? 0), out, err }),
    )
  })
}
