import type { LockRequestedEvent } from './event-map.ts'
import { processWide } from '../process-wide.ts'

/** What a span is about; what it is called in a trace is up to the tracer. */
export type SpanName = 'guard' | 'lock' | 'transaction' | 'ledger' | 'claim' | 'tick' | 'once'

export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>

/** What is known when it begins. */
export interface SpanSubject {
  readonly locks?: LockRequestedEvent['locks']
  /** The one word for what it is done to: a book, a table, a schedule. */
  readonly target?: string
  readonly attributes?: SpanAttributes
}

/** Something under way that is being traced. */
export interface Span {
  set(attributes: SpanAttributes): void
  /** Marks it as failed although its body does not throw. */
  fail(error: unknown): void
}

/** Whoever wants to know what is under way, and inside of what. */
export interface Tracer {
  /** Runs the body below a span, which ends when it settles. What the body starts belongs to the span. */
  run<T>(name: SpanName, subject: SpanSubject, body: (span: Span) => Promise<T>): Promise<T>
}

/** One for the process, like the tracer it stands for. */
const tracing = /* @__PURE__ */ processWide('tracer/1', () => ({
  by: undefined as Tracer | undefined,
}))

/** Sets the tracer and returns the one before. */
export function traceBy(next: Tracer | undefined): Tracer | undefined {
  const before = tracing.by
  tracing.by = next
  return before
}

/** For callers to whom even a closure is too much. */
export function isTraced(): boolean {
  return tracing.by !== undefined
}

/** Runs the body, below a span if somebody traces; otherwise that is all. */
export function traced<T>(
  name: SpanName,
  subject: () => SpanSubject,
  body: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  const tracer = tracing.by
  return tracer === undefined ? body(undefined) : tracer.run(name, subject(), body)
}
