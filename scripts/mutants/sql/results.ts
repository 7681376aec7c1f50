import { hash } from 'node:crypto'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import type { SqlMutant } from './change.ts'

export type Status = 'caught' | 'timed out' | 'survived' | 'invalid' | 'known'

/** What the tests said to a mutant. */
export interface Result {
  readonly mutant: SqlMutant
  readonly status: Status
  /** The test that noticed, or why it could not be installed. */
  readonly by: string
}

interface Kept {
  readonly status: Status
  readonly by: string
  /** Of the test files that had a say: the one that noticed, or all of them. */
  readonly tests: string
}

/** What was found before. It counts for as long as the changed file and the tests that had a say are the same. */
export class Results {
  readonly #path: string
  readonly #kept: Record<string, Kept>

  constructor(path: string, fresh: boolean) {
    this.#path = path
    this.#kept =
      !fresh && existsSync(path)
        ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, Kept>)
        : {}
  }

  /** The earlier result, unless the tests have changed since. */
  get(mutant: SqlMutant, text: string, tests: readonly string[]): Result | undefined {
    const kept = this.#kept[keyOf(mutant, text)]
    if (kept === undefined || kept.tests !== checksumOf(kept, tests)) return undefined
    return { mutant, status: kept.status, by: kept.by }
  }

  add({ mutant, status, by }: Result, text: string, tests: readonly string[]): void {
    const kept = { status, by, tests: checksumOf({ status, by }, tests) }
    this.#kept[keyOf(mutant, text)] = kept
    writeFileSync(this.#path, JSON.stringify(this.#kept))
  }
}

function keyOf({ file }: SqlMutant, text: string): string {
  return hash('sha256', `${file} ${text}`)
}

function checksumOf({ status, by }: Pick<Kept, 'status' | 'by'>, tests: readonly string[]): string {
  const files =
    status === 'caught' ? [by.split(' > ')[0] as string] : globSync([...tests]).toSorted()
  return hash(
    'sha256',
    files.map((file) => (existsSync(file) ? readFileSync(file) : '')).join('\n'),
  )
}
