import type { Violation } from '../core/model.ts'

/** Gathers violations: the first of a rule in words, the others counted. */
export class Findings {
  readonly #workload: string
  readonly #found = new Map<string, { readonly what: string; count: number }>()

  constructor(workload: string) {
    this.#workload = workload
  }

  add(rule: string, what: string): void {
    const found = this.#found.get(rule)
    if (found === undefined) this.#found.set(rule, { what, count: 1 })
    else found.count += 1
  }

  get violations(): Violation[] {
    return [...this.#found].map(([rule, { what, count }]) => ({
      rule,
      workload: this.#workload,
      what: count === 1 ? what : `${what} (and ${count - 1} more)`,
    }))
  }
}
