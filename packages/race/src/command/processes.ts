/** The processes of a hunt: the command that is recorded, and the one that proves. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Report } from '../core/model.ts'
import type { HuntProgress, HuntReport } from '../hunt/model.ts'
import { ours } from '../run/state/on-signal.ts'
import { socketVariable } from './messages.ts'
import type { AgainTask } from './prove-again.ts'
import type { ProvingTask } from './prove-recording.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** How a process ended: its code, or 128 and the number of the signal. */
export async function runRecorded(
  [program = '', ...args]: readonly string[],
  environment: Environment,
  { recorder, socket }: { readonly recorder: URL; readonly socket: string },
): Promise<number> {
  const options = [environment['NODE_OPTIONS'], `--import=${recorder.href}`]
  const child = spawn(program, args, {
    stdio: 'inherit',
    env: {
      ...environment,
      NODE_OPTIONS: options.filter((one) => one !== undefined).join(' '),
      [socketVariable]: socket,
    },
  })
  return await ended(child)
}

/** What the process that proves tells. */
export type FromProver =
  | { readonly kind: 'progress'; readonly progress: HuntProgress }
  | { readonly kind: 'report'; readonly report: HuntReport | Report }
  | { readonly kind: 'failed'; readonly message: string }

/** A signal has ended the process that proves. */
export class Stopped extends Error {
  override readonly name = 'Stopped'
  /** 128 and the number of the signal. */
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** Proves in a process of its own, whose output nobody wants: it is a server that is asked thousands of times. */
export async function runProver(
  program: URL,
  task: ProvingTask | AgainTask,
  environment: Environment,
  progress: (progress: HuntProgress) => void = () => undefined,
): Promise<HuntReport | Report> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-hunt-'))
  const log = join(folder, 'application.log')
  try {
    const { last, code } = await prove(program, task, { environment, log }, progress)
    if (last?.kind === 'report') return last.report
    if (code > 128) throw new Stopped(code, ourWords(log) || `it was ended, with ${code}`)
    const message =
      last?.kind === 'failed'
        ? last.message
        : `the process that runs the application has ended by itself, with ${code}`
    throw new Error(message + lastWords(log))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function prove(
  program: URL,
  task: ProvingTask | AgainTask,
  { environment, log }: { readonly environment: Environment; readonly log: string },
  progress: (progress: HuntProgress) => void,
): Promise<{ readonly last: FromProver | undefined; readonly code: number }> {
  const output = openSync(log, 'w', 0o600)
  try {
    const child = spawn(process.execPath, [fileURLToPath(program)], {
      stdio: ['ignore', output, output, 'ipc'],
      serialization: 'advanced',
      env: { ...environment },
    })
    let last: FromProver | undefined
    child.on('message', (message) => {
      const told = message as FromProver
      if (told.kind === 'progress') progress(told.progress)
      else last = told
    })
    child.once('spawn', () => void child.send(task))
    return { code: await ended(child), last }
  } finally {
    closeSync(output)
  }
}

/** What we ourselves wrote there: whether the rows are put back. */
function ourWords(log: string): string {
  const lines = readFileSync(log, 'utf8').split('\n')
  return lines
    .filter((line) => line.startsWith(ours))
    .map((line) => line.slice(ours.length))
    .join('\n')
}

/** What the application wrote before it went wrong. */
function lastWords(log: string): string {
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-12)
  return lines.join('') === '' ? '' : `\n\nThe application wrote at last:\n${lines.join('\n')}`
}

const forwarded = ['SIGTERM', 'SIGHUP'] as const

/** If we are told to end, that is how it has ended, whatever it makes of the signal. */
async function ended(child: ChildProcess): Promise<number> {
  let heard: NodeJS.Signals | undefined
  // A terminal sends SIGINT to all of them.
  const stay = (signal: NodeJS.Signals): void => {
    heard ??= signal
  }
  const forward = (signal: NodeJS.Signals): void => {
    heard ??= signal
    child.kill(signal)
  }
  process.on('SIGINT', stay)
  for (const signal of forwarded) process.on(signal, forward)
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    const by = heard ?? signal
    return by ? 128 + constants.signals[by] : (code ?? 0)
  } finally {
    process.off('SIGINT', stay)
    for (const one of forwarded) process.off(one, forward)
  }
}
