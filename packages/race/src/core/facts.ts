/**
 * The end of a run as the search compares it: values as they are, with what the runner knows about where they come
 * from. What people see is made of it later.
 */

/** The time in which a run can have read the clock, in milliseconds. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** What a run left behind, and how its flows ended. */
export interface Facts {
  readonly span: Span
  readonly tables: readonly FactTable[]
  /** By flow. */
  readonly ends: readonly Fact[]
}

export interface FactTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Fact[])[]
}

/** A value, as JSON has them, in which keys of rows may stand. */
export type Fact =
  | string
  | number
  | boolean
  | null
  | RowKey
  | PerhapsKey
  | JoinedText
  | FactObject
  | readonly Fact[]

/** The key of a row, if it is drawn anew in every run: what it is does not matter, only which row it belongs to. */
export interface RowKey {
  readonly kind: 'key'
  /** Equal wherever the same key stands. */
  readonly id: string
  /** For people. */
  readonly shown: string
}

/** A value of an answer that is the key of a row, or only looks like one: `2` may be the second row, or a count. */
export interface PerhapsKey {
  readonly kind: 'perhaps'
  readonly literal: string | number
  /** One for each column that has such a key. */
  readonly keys: readonly (RowKey & { readonly column: string })[]
}

/** A text with keys in it: `/orders/3`. */
export interface JoinedText {
  readonly kind: 'text'
  readonly parts: readonly (string | RowKey | PerhapsKey)[]
}

/** For the compiler: a list is the only fact that is an array. */
export function isList(fact: Fact): fact is readonly Fact[] {
  return Array.isArray(fact)
}

export interface FactObject {
  readonly kind: 'object'
  readonly entries: readonly (readonly [name: string, value: Fact])[]
}
