import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AppOrder, AppSetup, MoverNews, MoverTask } from './shards-model.ts'

/** Applications that work all the time, of which some are killed and replaced. */
export class Applications implements AsyncDisposable {
  readonly files: string[] = []
  readonly #children: ChildProcess[] = []
  #setup: Omit<AppSetup, 'file'>
  readonly #folder: string
  /** Of those that are gone. */
  #counted = 0

  private constructor(folder: string, setup: Omit<AppSetup, 'file'>) {
    this.#folder = folder
    this.#setup = setup
  }

  static async start(
    count: number,
    folder: string,
    setup: Omit<AppSetup, 'file'>,
  ): Promise<Applications> {
    const crew = new Applications(folder, setup)
    await Promise.all(Array.from({ length: count }, () => crew.#startOne()))
    return crew
  }

  async #startOne(at = this.#children.length): Promise<void> {
    const file = join(this.#folder, `app-${this.files.length}.jsonl`)
    this.files.push(file)
    writeFileSync(file, '')
    const child = fork(new URL('shards-app.ts', import.meta.url), { stdio: 'inherit' })
    this.#children[at] = child
    child.send({ ...this.#setup, file } satisfies AppSetup)
    await once(child, 'message')
  }

  /** Operations on keys whose buckets stay, of all applications together. */
  async done(order: AppOrder = {}): Promise<number> {
    const counts = await Promise.all(
      this.#children.map(async (child) => {
        child.send(order)
        const [count] = (await once(child, 'message')) as [number]
        return count
      }),
    )
    return counts.reduce((sum, each) => sum + each, this.#counted)
  }

  /** The time between two operations, from now on. */
  async pace(thinkMs: number): Promise<void> {
    this.#setup = { ...this.#setup, thinkMs }
    await this.done({ thinkMs })
  }

  /** SIGKILL, and another in its place. */
  async killOne(which: number): Promise<void> {
    const at = which % this.#children.length
    await killed(this.#children[at])
    await this.#startOne(at)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map(killed))
  }
}

/** A process that moves, hears of its steps and may be killed at any. */
export class Mover {
  readonly #child: ChildProcess

  constructor(task: MoverTask) {
    this.#child = fork(new URL('shards-mover.ts', import.meta.url), { stdio: 'inherit' })
    this.#child.send(task)
  }

  /** News until it is over, has failed or is gone. */
  async *news(): AsyncGenerator<MoverNews> {
    const waiting: MoverNews[] = []
    let wake = (): void => undefined
    let gone = false
    this.#child.on('message', (news: MoverNews) => {
      waiting.push(news)
      wake()
    })
    this.#child.once('exit', () => {
      gone = true
      wake()
    })
    for (;;) {
      const next = waiting.shift()
      if (next !== undefined) {
        yield next
        if (next.kind !== 'step') return
      } else if (gone) {
        return
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
  }

  async kill(): Promise<void> {
    await killed(this.#child)
  }
}

async function killed(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}
