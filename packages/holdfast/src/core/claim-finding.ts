/** One thing about a table that is not as claims need it. */
export interface ClaimFinding {
  readonly code:
    | 'table-missing'
    | 'column-missing'
    | 'column-nullable'
    | 'column-type'
    | 'column-name'
    | 'key-type'
    | 'key-not-unique'
    | 'index-missing'
    | 'privilege-missing'
  /** What it is about: `table outbox`, `column outbox.claim_token`. */
  readonly object: string
  readonly what: string
  /** SQL to run, or a sentence where there is none. */
  readonly fix: string
}
