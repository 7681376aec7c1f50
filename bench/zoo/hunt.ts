import { createWorker, type Weakening } from './crew.ts'
import { count, sentence, type Tally, type Wrong, wrongOf } from './judge.ts'
import type { Task } from './variants.ts'

/** What workers need: a database each, and a server that answers late. */
export interface Places {
  readonly urls: readonly string[]
  readonly elsewhere: string
}

interface HuntOptions {
  readonly tally: Tally
  /** On the clock of `performance`; tasks that have begun by then are ended. */
  readonly until: number
  readonly progress: (text: string) => void
}

/** Explores all tasks, one worker per database. */
export async function hunt(
  { urls, elsewhere }: Places,
  tasks: Iterator<Task, unknown>,
  { tally, until, progress }: HuntOptions,
): Promise<void> {
  let told = performance.now()
  await Promise.all(
    urls.map(async (url) => {
      const worker = createWorker({ url, elsewhere })
      try {
        while (performance.now() < until) {
          const next = tasks.next()
          if (next.done === true) return
          const task = next.value
          const report = await worker.explore(task)
          count(tally, task, report)
          const wrong = wrongOf(task, report)
          if (wrong !== undefined) progress(sentence(wrong, task, report))
          if (performance.now() - told < 10_000) continue
          told = performance.now()
          progress(`${tally.explorations} explorations, the last of ${task.entry}`)
        }
      } finally {
        await worker.stop()
      }
    }),
  )
}

/** What an explorer without a protection said wrongly, and after how many explorations. */
export interface Caught {
  readonly explorations: number
  readonly finding: string | undefined
}

/** Explores the tasks with an explorer that lacks a protection, until it is wrong in the way that shows it. */
export async function huntWithout(
  place: { readonly url: string; readonly elsewhere: string; readonly weakened: Weakening },
  tasks: readonly Task[],
  looked: Wrong,
): Promise<Caught> {
  const worker = createWorker(place)
  try {
    for (const [index, task] of tasks.entries()) {
      const report = await worker.explore(task)
      const wrong = wrongOf(task, report)
      if (wrong !== looked) continue
      return { explorations: index + 1, finding: sentence(wrong, task, report) }
    }
    return { explorations: tasks.length, finding: undefined }
  } finally {
    await worker.stop()
  }
}
