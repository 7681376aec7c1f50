import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { HolderNews, HoldTask, LeadTask } from './lease-holder.ts'

/** Our end of a process that holds leases; see lease-holder.ts. */
export class HolderProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #news: HolderNews[] = []
  #heard = Promise.withResolvers<void>()

  private constructor(url: string) {
    this.#child = fork(new URL('./lease-holder.ts', import.meta.url), [url], { stdio: 'inherit' })
    this.#child.on('message', (news) => {
      this.#news.push(news as HolderNews)
      this.#heard.resolve()
      this.#heard = Promise.withResolvers()
    })
  }

  static async start(url: string): Promise<HolderProcess> {
    const holder = new HolderProcess(url)
    await holder.hears('ready')
    return holder
  }

  send(task: HoldTask | LeadTask | 'enough'): void {
    this.#child.send(task)
  }

  /** The next news, which must be of one of these kinds. */
  async hears<K extends HolderNews['kind']>(
    ...kinds: readonly K[]
  ): Promise<Extract<HolderNews, { kind: K }>> {
    while (this.#news.length === 0) await this.#heard.promise
    const news = this.#news.shift() as HolderNews
    if ((kinds as readonly string[]).includes(news.kind)) {
      return news as Extract<HolderNews, { kind: K }>
    }
    throw new Error(`${kinds.join(' or ')} was expected, not ${JSON.stringify(news)}`)
  }

  pause(): void {
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    this.#child.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
