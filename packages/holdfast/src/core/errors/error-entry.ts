/** Error classes, by what the caller can do about it. */
export type ErrorClass =
  | 'UsageError'
  | 'RefusedError'
  | 'ContentionError'
  | 'LostError'
  | 'UnknownOutcomeError'
  | 'DriverError'
  | 'SchemaError'

/** What the table knows about one code. */
export interface ErrorEntry {
  readonly class: ErrorClass
  /** Running the whole operation again may succeed, and is safe. */
  readonly retryable: boolean
  /** What happened. */
  readonly what: string
  /** What to do next; part of the message. */
  readonly next: string
}
