import { Refusal } from '../core/refusals.ts'
import type { ShownText } from '../core/shown-text.ts'

interface Kept {
  readonly answer: Promise<ShownText>
  readonly keepMs: number
  /** Undefined while the question is under way. */
  doneMs: number | undefined
}

const most = { running: 2, waiting: 20, kept: 50 }
const patienceMs = 8_000

/**
 * Puts questions to one database so that the number of people who look does not matter to it: the same
 * question at the same time is asked once, its answer serves everybody for a second, two questions run at
 * once, and a short queue waits. Failures are shared as well.
 */
export class SharedReads {
  readonly #kept = new Map<string, Kept>()
  readonly #queue: (() => void)[] = []
  #running = 0

  /** @throws Refusal BUSY, DATABASE_SLOW, and whatever `ask` throws */
  async read(question: string, ask: () => Promise<ShownText>, keepMs = 1_000): Promise<ShownText> {
    const known = this.#kept.get(question)
    if (known !== undefined && (known.doneMs === undefined || now() - known.doneMs < keepMs)) {
      return await inTime(known.answer)
    }
    if (this.#running >= most.running && this.#queue.length >= most.waiting) {
      throw new Refusal('BUSY', { headers: { 'retry-after': '2' } })
    }
    const kept: Kept = { answer: this.#inTurn(ask), keepMs, doneMs: undefined }
    this.#keep(question, kept)
    const over = (): void => {
      kept.doneMs = now()
    }
    kept.answer.then(over, over)
    return await inTime(kept.answer)
  }

  async #inTurn(ask: () => Promise<ShownText>): Promise<ShownText> {
    if (this.#running < most.running) this.#running += 1
    else {
      // Whoever goes hands its place over, so that nobody can slip in between.
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#queue.push(resolve)
      await promise
    }
    try {
      return await ask()
    } finally {
      const next = this.#queue.shift()
      if (next === undefined) this.#running -= 1
      else next()
    }
  }

  #keep(question: string, kept: Kept): void {
    this.#kept.delete(question)
    this.#kept.set(question, kept)
    for (const [old, { doneMs, keepMs }] of this.#kept) {
      if (doneMs === undefined) continue
      if (this.#kept.size > most.kept || now() - doneMs >= keepMs) this.#kept.delete(old)
    }
  }
}

/** The question goes on, and keeps its place in the queue; who asked is told. */
async function inTime(answer: Promise<ShownText>): Promise<ShownText> {
  const tooLate = Promise.withResolvers<never>()
  const timer = setTimeout(() => tooLate.reject(new Refusal('DATABASE_SLOW')), patienceMs)
  try {
    return await Promise.race([answer, tooLate.promise])
  } finally {
    clearTimeout(timer)
  }
}

function now(): number {
  return performance.now()
}
