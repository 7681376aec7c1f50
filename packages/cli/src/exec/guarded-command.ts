import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ExecTerms } from './exec-terms.ts'
import type { Ended, FromGuardian, NotStarted, ToGuardian } from './guardian-words.ts'
import { machineMs } from './machine-clock.ts'
import { endGroup } from './process-group.ts'

const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
const program = fileURLToPath(new URL(`./guardian.${ending}`, import.meta.url))

/** How it ended; `unknown` if the guardian died before it. */
export type Outcome = Ended | NotStarted | 'unknown'

/** How often we look at the guardian and the clock, as a part of the time that is spare. */
const lookShare = 4

/** Our end of a command that a guardian runs; see guardian.ts. */
export class GuardedCommand {
  readonly #guardian: ChildProcess
  readonly #terms: ExecTerms
  readonly #ended = Promise.withResolvers<Outcome>()
  #until: number
  /** From then on the guardian has had its time to end the command. */
  #lateAt = Number.POSITIVE_INFINITY
  #isLate = false
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
    this.#expectEnd()
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
    this.#asking = setInterval(() => this.#look(), terms.spareMs / lookShare)
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

  /** Nothing of it runs any more. */
  get ended(): Promise<Outcome> {
    return this.#ended.promise
  }

  /** The command may run until then; 0 is at once. */
  allow(until: number): void {
    this.#until = until
    this.#expectEnd()
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
    if (message.kind !== 'ended' && message.kind !== 'not-started') return
    clearInterval(this.#asking)
    this.#group = undefined
    const { kind: _, ...outcome } = message
    this.#ended.resolve(outcome)
  }

  /** Half of what is spare is the guardian's, the other half is ours. */
  #expectEnd(): void {
    const { graceMs, spareMs } = this.#terms
    this.#lateAt = Math.max(this.#until + graceMs, machineMs()) + spareMs / 2
  }

  #send(message: ToGuardian): void {
    if (this.#guardian.connected) this.#guardian.send(message, () => undefined)
  }

  /**
   * A guardian that stands still would not notice if we did, too: it is replaced by an end. And it cannot end the
   * command if the lease is over meanwhile: that is for us to do, before the lease expires.
   */
  #look(): void {
    const now = machineMs()
    this.#isLate ||= now >= this.#lateAt
    if (this.#isLate || now - this.#heardAt > this.#terms.ttlMs / 2) this.#guardian.kill('SIGKILL')
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
    const outcome = this.#isLate ? { code: null, signal: null, cut: true } : 'unknown'
    void gone.then(() => this.#ended.resolve(outcome))
  }
}
