import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { waitUntil } from '@holdfast/testkit'
import type { LeaderNews, LeaderTask } from './leader-child.ts'

/** Our end of a candidate in a process of its own; see `leader-child.ts`. */
export class Candidate implements AsyncDisposable {
  readonly #child: ChildProcess
  #news: LeaderNews[] = []

  constructor(task: LeaderTask) {
    this.#child = fork(new URL('./leader-child.ts', import.meta.url), {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#child.on('message', (news) => void this.#news.push(news as LeaderNews))
    this.#child.send(task)
  }

  get pid(): number {
    return this.#child.pid as number
  }

  /** The last term it has begun, if any. */
  get term(): { token: bigint; at: number } | undefined {
    const last = this.#news.findLast((news) => news.kind === 'leads')
    return last && { token: BigInt(last.token), at: last.at }
  }

  /** Whether it believes that it leads. */
  get leads(): boolean {
    return this.#news.findLast(({ kind }) => kind !== 'stopped')?.kind === 'leads'
  }

  /** Resolves with its token once it leads, for the first time after `token`. */
  async elected(after = 0n): Promise<{ token: bigint; at: number }> {
    return await waitUntil(
      'it leads',
      () =>
        this.leads && this.term !== undefined && this.term.token > after ? this.term : undefined,
      { limitMs: 25_000 },
    )
  }

  async deposed(): Promise<void> {
    await waitUntil('it does not lead', () => !this.leads || undefined, { limitMs: 25_000 })
  }

  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void {
    this.#child.kill(name)
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#child.send('stop')
    await once(this.#child, 'exit')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }
}
