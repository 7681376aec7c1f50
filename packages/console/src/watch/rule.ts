import type { EngineName } from '../core/wire.ts'

/** Makes masks. With masking switched off they are the text itself. */
export interface Masks {
  /** Whether keys and what else users write is masked. */
  readonly on: boolean
  /** Whose sentences and statements these are. */
  readonly engine: EngineName
  /** The same text gets the same mask, so that it can still be followed. */
  text(text: string): string
  /** `cart:7 +2` becomes `cart:•k3Zf9a +2`, if `cart` is one of the namespaces; else all of it is masked. */
  name(text: string, namespaces: readonly (string | undefined)[]): string
  /** SQL without its values. */
  query(text: string): string
}

/**
 * How a text is shown. `plain`: our own words, numbers, times, and what is declared in code or in the
 * catalogue (namespaces, books, queues, tables, roles). `secret`: whatever users write.
 */
type TextRule = 'plain' | 'secret' | 'query'

/** By its own decision; it is given what the field belongs to. */
type OwnRule<T, Of> = (value: T, masks: Masks, of: Of) => T

/**
 * How a value is shown. Of an object every field has to be named: one that is not is left out, and does not
 * compile. So what is new is not shown until somebody says that it may be.
 */
export type Rule<T, Of = unknown> = T extends readonly (infer Item)[]
  ? Rule<Item, Of>
  : T extends object
    ? Rules<T> | OwnRule<T, Of>
    : T extends string
      ? TextRule | ((text: string, masks: Masks, of: Of) => string)
      : 'plain'

/** A rule for each field. */
export type Rules<T> = { readonly [Field in keyof T]-?: Rule<NonNullable<T[Field]>, T> }

/** What is left of a rule when the program runs. */
export type AnyRule =
  | TextRule
  | ((value: never, masks: Masks, of: never) => unknown)
  | { readonly [field: string]: AnyRule }
