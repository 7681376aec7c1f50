import { type Random, randomFor } from '../../bench/harness/random.ts'
import type { Seed } from '../core/model.ts'

export interface Step<F> {
  readonly fault: F
  /** After the beginning of the load, or the end of the step before it. */
  readonly afterMs: number
  readonly seed: Seed
}

/** Which faults begin when. The steps of one lane come one after the other, lanes do not wait for each other. */
export interface Plan<F> {
  readonly seed: Seed
  readonly lanes: readonly (readonly Step<F>[])[]
}

const firstMs = [200, 700] as const
const nextMs = [50, 700] as const
const largest = 2 ** 30

function someStep<F>(random: Random, faults: readonly F[], afterMs: number): Step<F> {
  const fault = faults[random.integer(0, faults.length - 1)] as F
  return { fault, afterMs, seed: random.integer(1, largest) }
}

/** Up to `most` faults that may overlap. The same seed and the same list of faults make the same plan. */
export function planFor<F>(seed: Seed, faults: readonly F[], most: number = 4): Plan<F> {
  const random = randomFor(seed, 0)
  let afterMs = random.integer(...firstMs)
  const lanes = Array.from({ length: random.integer(1, most) }, (_, index) => {
    if (index > 0) afterMs += random.integer(...nextMs)
    return [someStep(random, faults, afterMs)]
  })
  return { seed, lanes }
}

/** `count` faults one after the other, and beside them one or none of the `companions`, at any moment. */
export function planInTurn<F>(
  seed: Seed,
  faults: readonly F[],
  count: number,
  companions: readonly F[] = [],
): Plan<F> {
  const random = randomFor(seed, 0)
  const main = Array.from({ length: count }, () =>
    someStep(random, faults, random.integer(...firstMs)),
  )
  const others = Array.from({ length: companions.length > 0 ? random.integer(0, count) : 0 }, () =>
    someStep(random, companions, random.integer(100, 3_000)),
  )
  return { seed, lanes: [main, others] }
}

/** Seeds of the episodes of a run: each can be run again alone. */
export function episodeSeed(seed: Seed, number: number): Seed {
  return randomFor(seed, number).integer(1, largest)
}
