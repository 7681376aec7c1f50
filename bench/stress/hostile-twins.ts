import type { PoolClient } from 'pg'
import { isHoldfastError } from '../../packages/holdfast/src/core/errors.ts'
import { type Holdfast, lockKey } from '../../packages/holdfast/src/index.ts'
import type { Random } from '../harness/random.ts'
import { twins } from './hostile-words.ts'

/** What was used under each name, by our own count. */
export class Names {
  readonly used = new Map<string, number>()
  readonly #hf: Holdfast<PoolClient>
  readonly #quota: ReturnType<Holdfast<PoolClient>['quota']>

  constructor(hf: Holdfast<PoolClient>) {
    this.#hf = hf
    this.#quota = hf.quota({ name: 'twins', limit: 1_000_000, per: 'lifetime' })
  }

  /** Uses both of two names that look alike; says what one has seen of the other. */
  async use(random: Random, operation: string): Promise<string | undefined> {
    const [one, other] = twins(random)
    const ids = [one, other].map(([scope, key]) => lockKey(scope, key).lock)
    if (JSON.stringify(ids[0], texts) === JSON.stringify(ids[1], texts)) {
      return `lockKey of ${JSON.stringify(one)} and ${JSON.stringify(other)} is the same lock`
    }
    for (const [at, [scope, key]] of [one, other].entries()) {
      const id = JSON.stringify([scope, key])
      try {
        const taken = await this.#quota.consume(key, 1, {
          operationId: `${operation}-${at}`,
          scope,
        })
        if (!taken.ok) return `consume of ${id} was refused: ${taken.reason}`
        this.used.set(id, (this.used.get(id) ?? 0) + 1)
        const answer = await this.#hf.once(key, () => Promise.resolve(id), { scope })
        if (answer.ok && answer.result !== id) return `once of ${id} answered ${answer.result}`
      } catch (error) {
        if (!isHoldfastError(error)) return `${id}: ${String(error)}`
      }
    }
    return undefined
  }

  /** What the database has of each name, against our count. */
  async wrong(): Promise<string[]> {
    const wrong: string[] = []
    for (const [id, count] of this.used) {
      const [scope, key] = JSON.parse(id) as [string, string]
      const { used } = await this.#quota.peek(key, { scope })
      if (used !== count) wrong.push(`${id} was used ${count} times, and ${used} are there`)
    }
    return wrong
  }
}

/** JSON has no bigint. */
function texts(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
