import type { ObjectKind } from '../engines/postgres/schema/catalogue.ts'

/** What kind of thing was found. */
export type FindingCode =
  | `${ObjectKind}-${'missing' | 'extra' | 'changed'}`
  | 'schema-missing'
  | 'file-missing'
  | 'file-newer'
  | 'file-changed'
  | 'file-leftover'
  | 'index-invalid'
  | 'trigger-disabled'
  | 'months-missing'
  | 'object-owner'
  | 'function-security'
  | 'function-search-path'
  | 'public-privilege'
  | 'role-missing'
  | 'role-owner'
  | 'role-privilege-missing'
  | 'role-privilege-extra'

/** One thing that is not as it should be. */
export interface Finding {
  readonly code: FindingCode
  /** What it is about: `column account.key`, `function apply(text)`, `migrations/0001-ledger`. */
  readonly object: string
  readonly what: string
  /** SQL to run, or a sentence where there is none. */
  readonly fix: string
}
