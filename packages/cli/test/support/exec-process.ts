import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { sendSignal, waitUntil } from '@holdfast/testkit'
import { command, environmentWith } from './run-command.ts'

/** What two processes may take to start from the sources, on a busy machine. */
const startMs = 45_000

/** `holdfast exec` as a process, and what it runs: a shell that says who it is and then does `script`. */
export class ExecProcess implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #ended: Promise<unknown[]>
  #out = ''
  #err = ''

  constructor(url: string, flags: readonly string[], script: string) {
    const [program = '', ...before] = command
    const told = `echo "is $PPID $$"; ${script}`
    this.#process = spawn(
      program,
      [...before, 'exec', '--lock', 'deploy', ...flags, '--', 'sh', '-c', told],
      { env: environmentWith({ DATABASE_URL: url }), stdio: ['ignore', 'pipe', 'pipe'] },
    )
    this.#process.stdout?.on('data', (text) => (this.#out += String(text)))
    this.#process.stderr?.on('data', (text) => (this.#err += String(text)))
    this.#ended = once(this.#process, 'close')
  }

  get out(): string {
    return this.#out
  }

  get err(): string {
    return this.#err
  }

  get holder(): number {
    return this.#process.pid as number
  }

  /** Once the command runs: its process id, and that of its guardian. */
  async runs(): Promise<{ readonly guardian: number; readonly child: number }> {
    const look = (): { readonly guardian: number; readonly child: number } | undefined => {
      const [, guardian, child] = /^is (\d+) (\d+)$/m.exec(this.#out) ?? []
      if (child !== undefined) return { guardian: Number(guardian), child: Number(child) }
      if (this.#process.exitCode !== null) throw new Error(`it did not run: ${this.#err}`)
      return undefined
    }
    return await waitUntil('the command runs', look, { limitMs: startMs })
  }

  async says(text: string): Promise<void> {
    const look = (): true | undefined => this.#out.includes(text) || undefined
    await waitUntil(`it says ${text}`, look, { limitMs: startMs })
  }

  async tells(pattern: RegExp): Promise<void> {
    const look = (): true | undefined => pattern.test(this.#err) || undefined
    await waitUntil(`it tells ${pattern}`, look, { limitMs: startMs })
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name)
  }

  /** The exit code; null if a signal ended it. Its streams are closed by then, so nobody it started writes any more. */
  async ended(): Promise<number | null> {
    const [code] = (await this.#ended) as [number | null]
    return code
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGCONT')
    this.#process.kill('SIGKILL')
    const [, guardian, child] = /^is (\d+) (\d+)$/m.exec(this.#out) ?? []
    for (const pid of [guardian, child]) if (pid !== undefined) sendSignal(Number(pid), 'SIGKILL')
    await this.#ended
  }
}

/** Resolves when there is no such process. */
export async function untilGone(pid: number): Promise<void> {
  await waitUntil(`process ${pid} is gone`, () => !sendSignal(pid, 0) || undefined)
}
