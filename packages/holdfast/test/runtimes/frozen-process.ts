import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { waitUntil } from '@holdfast/testkit'
import type { PackedProject } from '../support/packed-project.ts'
import type { Runtime } from './runtime.ts'

/** What `handler.mjs` answers to an invocation. */
export interface Answer {
  /** The invocation that it is about. */
  readonly call?: string
  readonly ready?: true
  /** It is in the middle of it. */
  readonly inside?: true
  readonly result?: unknown
  /** Of the error it ended with. */
  readonly code?: string
  readonly tookMs?: number
}

/** A handler in a process of its own that can be made to stand still, as platforms do between invocations. */
export class FrozenProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #answers: Answer[] = []
  #calls = 0

  constructor(project: PackedProject, runtime: Runtime, env: Readonly<Record<string, string>>) {
    this.#child = spawn(runtime.command, [...runtime.args, 'handler.mjs'], {
      cwd: project.folder,
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    // It may be dead already when it is told something: then there is no answer.
    this.#child.stdin?.on('error', () => undefined)
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on(
      'line',
      (line) => void this.#answers.push(JSON.parse(line) as Answer),
    )
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  async ready(): Promise<void> {
    await this.#answer(({ ready }) => ready === true)
  }

  /** Sends an invocation, also while it stands still. Gives what its answer is known by. */
  send(ask: string, event: object = {}): string {
    this.#calls += 1
    const call = `call-${this.#calls}`
    this.#child.stdin?.write(`${JSON.stringify({ ...event, ask, call })}\n`)
    return call
  }

  /** The answer to an invocation, within the time that an invocation has. */
  async answerTo(call: string): Promise<Answer> {
    return await this.#answer((each) => each.call === call && each.inside !== true)
  }

  async invoke(ask: string, event?: object): Promise<Answer> {
    return await this.answerTo(this.send(ask, event))
  }

  async inside(call: string): Promise<void> {
    await this.#answer((each) => each.call === call && each.inside === true)
  }

  /** Resolves when it stands still. */
  async freeze(): Promise<void> {
    this.#child.kill('SIGSTOP')
    await waitUntil('it stands still', async () => {
      const stat = await readFile(`/proc/${this.#child.pid}/stat`, 'utf8')
      return /\) [Tt] /.test(stat) || undefined
    })
  }

  thaw(): void {
    this.#child.kill('SIGCONT')
  }

  async ended(): Promise<number | null> {
    if (this.alive) await once(this.#child, 'exit')
    return this.#child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.alive) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }

  async #answer(is: (answer: Answer) => boolean): Promise<Answer> {
    return await waitUntil(
      'it answers',
      () => {
        const found = this.#answers.find(is)
        if (found === undefined && !this.alive) throw new Error('the process has ended')
        return found
      },
      { limitMs: 15_000 },
    )
  }
}
