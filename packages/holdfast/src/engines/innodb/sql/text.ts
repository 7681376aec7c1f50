import type { Value } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { Recent } from '../../../core/recent.ts'
import type { TableName } from '../../../core/table-name.ts'

/** A name as SQL text, always quoted. */
export function quoteIdentifier(name: string): string {
  if (typeof name !== 'string' || name.length === 0 || name.includes('\0')) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'identifier', subject: 'a name is empty or contains NUL' },
    })
  }
  return `\`${name.replaceAll('`', '``')}\``
}

export function tableText({ schema, table }: TableName): string {
  const name = quoteIdentifier(table)
  return schema === undefined ? name : `${quoteIdentifier(schema)}.${name}`
}

/** A part of a statement, and what is bound to the placeholders in it. */
export interface Fragment {
  readonly text: string
  readonly values: readonly Value[]
}

/** What is bound to the placeholders of these parts, in their order. */
export function valuesOf(parts: readonly Fragment[]): readonly Value[] {
  return parts.flatMap(({ values }) => values)
}

/**
 * What a locking read may take at most, as MariaDB says it and as MySQL does: each passes over the other's words. Counts
 * for the whole statement, also where it waits for the definition of a table. It cannot be bound, so it is rounded up to
 * two digits: a client prepares each text, and a server keeps only so many of them.
 */
export function limited(limitMs: number | undefined): {
  readonly before: string
  readonly hint: string
} {
  if (limitMs === undefined) return { before: '', hint: '' }
  const ms = upToTwoDigits(Math.max(1, Math.ceil(limitMs)))
  return {
    before: `/*M! SET STATEMENT max_statement_time = ${ms / 1_000} FOR */ `,
    hint: `/*+ MAX_EXECUTION_TIME(${ms}) */ `,
  }
}

const limit = /^\/\*M! SET STATEMENT .*? FOR \*\/ /

/** What `limited` has put before a statement, and the statement. */
export function apartFromLimit(text: string): readonly [before: string, rest: string] {
  const [before = ''] = limit.exec(text) ?? []
  return [before, text.slice(before.length)]
}

function upToTwoDigits(whole: number): number {
  const step = 10 ** Math.max(0, String(whole).length - 2)
  return Math.ceil(whole / step) * step
}

/**
 * Texts that were made before. A client looks up what it has prepared by all letters of a text: one that is made anew
 * each time costs more to find than to make.
 */
export class Texts {
  readonly #made = new Recent<string, Recent<string, string>>(100)

  /** The text that these two stand for. */
  of(one: string, other: string, make: () => string): string {
    let made = this.#made.get(other)
    if (made === undefined) this.#made.set(other, (made = new Recent(500)))
    let text = made.get(one)
    if (text === undefined) made.set(one, (text = make()))
    return text
  }
}
