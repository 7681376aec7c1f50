/** An array as PostgreSQL reads it, put together element by element. */
export class ArrayLiteral {
  #elements = ''
  #empty = true
  #used = false
  #nulls = false

  /** A number, a UUID or another value that needs no quotes. */
  plain(value: string | number | undefined): void {
    this.#add(value === undefined ? undefined : `${value}`)
  }

  text(value: string | undefined): void {
    this.#add(
      value === undefined
        ? undefined
        : special.test(value)
          ? `"${value.replaceAll(/["\\]/g, '\\$&')}"`
          : `"${value}"`,
    )
  }

  /** Null if no element has a value: a column of nulls. */
  literal(): string | null {
    return this.#used ? `{${this.#elements}}` : null
  }

  /** Some elements have a value and others do not. */
  get isMixed(): boolean {
    return this.#used && this.#nulls
  }

  #add(element: string | undefined): void {
    if (element === undefined) this.#nulls = true
    else this.#used = true
    this.#elements += this.#empty ? (element ?? 'NULL') : `,${element ?? 'NULL'}`
    this.#empty = false
  }
}

const special = /["\\]/
