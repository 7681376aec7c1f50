import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ExecTerms } from './exec-terms.ts'
import type { Ended, FromGuardian, ToGuardian } from './guardian-words.ts'
import { machineMs } from './machine-clock.ts'
import { endGroup } from './process-group.ts'

const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
const program = fileURLToPath(new URL(`./guardian.${ending}`, import.meta.url))

/** How often the guardian is asked whether it is there, as a part of how long it may be silent. */
const askShare = 8

/** Our end of a command that a guardian runs; see guardian.ts. */
export class GuardedCommand {
  readonly #guardian: ChildProcess
  readonly #terms: ExecTerms
  readonly #ended = Promise.withResolvers<Ended | 'unknown'>()
  #until: number
  #group: number | undefined
  #heardAt = machineMs()
  #asking: NodeJS.Timeout | undefined

  private constructor(
    command: readonly string[],
    environment: NodeJS.ProcessEnv,
    terms: ExecTerms,
    until: number,
  ) {
    this.#terms = terms
    this.#until = until
    this.#guardian = spawn(process.execPath, [program, String(terms.graceMs)], {
      // A session of its own: what a terminal or a supervisor sends to our group does not reach it.
      detached: true,
      env: environment,
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    })
    this.#guardian.on('message', (message) => this.#hear(message as FromGuardian))
    this.#guardian.once('exit', () => this.#takeOver())
    // Nothing is sent to one that is gone, but its channel may notice later.
    this.#guardian.on('error', () => undefined)
    this.#send({ kind: 'spawn', command, until })
    this.#asking = setInterval(() => this.#ask(), terms.ttlMs / 2 / askShare)
  }

  /** Starts a guardian and, through it, the command. */
  static async start(
    command: readonly string[],
    environment: NodeJS.ProcessEnv,
    terms: ExecTerms,
    until: number,
  ): Promise<GuardedCommand> {
    const started = new GuardedCommand(command, environment, terms, until)
    await once(started.#guardian, 'spawn')
    return started
  }

  /** How it ended, and nothing of it runs any more; `unknown` if the guardian died before it. */
  get ended(): Promise<Ended | 'unknown'> {
    return this.#ended.promise
  }

  /** The command may run until then; 0 is at once. */
  allow(until: number): void {
    this.#until = until
    this.#send({ kind: 'until', until })
  }

  signal(signal: NodeJS.Signals): void {
    this.#send({ kind: 'signal', signal })
  }

  #hear(message: FromGuardian): void {
    this.#heardAt = machineMs()
    if (message.kind === 'spawned') {
      this.#group = message.group
      this.#send({ kind: 'go' })
    }
    if (message.kind !== 'ended') return
    clearInterval(this.#asking)
    this.#group = undefined
    const { code, signal, cut } = message
    this.#ended.resolve({ code, signal, cut })
  }

  #send(message: ToGuardian): void {
    if (this.#guardian.connected) this.#guardian.send(message, () => undefined)
  }

  /** One that stands still would not notice if we did, too: it is replaced by an end. */
  #ask(): void {
    if (machineMs() - this.#heardAt > this.#terms.ttlMs / 2) this.#guardian.kill('SIGKILL')
    else this.#send({ kind: 'until', until: this.#until })
  }

  /** The guardian is gone. If that was before the command's end, it is for us to end it. */
  #takeOver(): void {
    clearInterval(this.#asking)
    const group = this.#group
    const { graceMs } = this.#terms
    const leftAt = machineMs()
    // Without a group it is over, or it never got through the gate.
    const gone =
      group === undefined
        ? Promise.resolve()
        : endGroup(group, () => Math.min(this.#until, leftAt) + graceMs)
    void gone.then(() => this.#ended.resolve('unknown'))
  }
}
