import { isHoldfastError } from '../core/errors.ts'

interface Waiting<I, O> {
  readonly item: I
  readonly resolve: (answer: O) => void
  readonly reject: (error: unknown) => void
}

/**
 * Puts together what callers ask for while an earlier call is under way, so that many ask at the
 * price of one. There is no timer: a single caller waits for nobody.
 */
export class Gathering<I, O> {
  readonly #send: (items: readonly I[]) => Promise<readonly O[]>
  readonly #lanes: number
  readonly #most: number
  readonly #sizeOf: (item: I) => number
  readonly #isAnswer: (error: unknown) => boolean
  #waiting: Waiting<I, O>[] = []
  #underWay = 0
  #woken = false

  constructor(
    send: (items: readonly I[]) => Promise<readonly O[]>,
    {
      lanes,
      most,
      sizeOf = () => 1,
      isAnswer,
    }: {
      /** How many calls may be under way. */
      readonly lanes: number
      /** Rows in one call, unless one item alone has more. */
      readonly most: number
      readonly sizeOf?: (item: I) => number
      /** Whether the server has said so, and not the way to it. */
      readonly isAnswer: (error: unknown) => boolean
    },
  ) {
    this.#send = send
    this.#lanes = lanes
    this.#most = most
    this.#sizeOf = sizeOf
    this.#isAnswer = isAnswer
  }

  async add(item: I): Promise<O> {
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (this.#woken || this.#underWay === this.#lanes) return
      this.#woken = true
      // What the same turn of the event loop asks for goes out together.
      queueMicrotask(() => this.#fill())
    })
  }

  #fill(): void {
    this.#woken = false
    while (this.#underWay < this.#lanes && this.#waiting.length > 0) {
      this.#underWay += 1
      const batch = this.#take()
      void this.#answer(batch).finally(() => {
        this.#underWay -= 1
        this.#fill()
      })
    }
  }

  #take(): Waiting<I, O>[] {
    let [count, size] = [0, 0]
    while (count < this.#waiting.length) {
      size += this.#sizeOf((this.#waiting[count] as Waiting<I, O>).item)
      if (count > 0 && size > this.#most) break
      count += 1
    }
    return this.#waiting.splice(0, count)
  }

  /** Never rejects: everybody is told their own outcome. */
  async #answer(batch: readonly Waiting<I, O>[]): Promise<void> {
    try {
      const answers = await this.#send(batch.map(({ item }) => item))
      batch.forEach(({ resolve }, at) => resolve(answers[at] as O))
    } catch (error) {
      // A statement fails as a whole; whoever made it fail (a trigger, a constraint) is looked for by
      // halves. If nobody could be reached, that would only multiply the failures.
      if (batch.length > 1 && this.#isAnswer(error) && !isHoldfastError(error)) {
        const middle = Math.ceil(batch.length / 2)
        await this.#answer(batch.slice(0, middle))
        await this.#answer(batch.slice(middle))
      } else {
        for (const { reject } of batch) reject(error)
      }
    }
  }
}
