/**
 * What is used of `@opentelemetry/api`, by shape: the library imports no package, not even for its types,
 * and who traces hands over the very copy that their SDK is registered with.
 */

type AttributeValue = string | number | boolean | undefined
export type OtelAttributes = Record<string, AttributeValue>

export interface OtelSpan {
  setAttributes(attributes: OtelAttributes): unknown
  setStatus(status: { code: number; message?: string }): unknown
  addEvent(name: string, attributes?: OtelAttributes): unknown
  end(): void
}

interface OtelTracer<C> {
  startSpan(
    name: string,
    options?: { kind?: number; attributes?: OtelAttributes },
    context?: C,
  ): OtelSpan
}

interface OtelObservable {
  addCallback(
    callback: (result: {
      observe(value: number, attributes?: OtelAttributes): void
    }) => void | Promise<void>,
  ): void
  removeCallback(callback: never): void
}

export interface OtelMeter {
  createHistogram(
    name: string,
    options?: { unit?: string; description?: string; advice?: object },
  ): { record(value: number, attributes?: OtelAttributes): void }
  createObservableCounter(
    name: string,
    options?: { unit?: string; description?: string },
  ): OtelObservable
  createObservableGauge(
    name: string,
    options?: { unit?: string; description?: string },
  ): OtelObservable
}

/** The module `@opentelemetry/api`. */
export interface OpenTelemetryApi<C = unknown> {
  readonly trace: {
    getTracer(name: string, version?: string): OtelTracer<C>
    setSpan(context: C, span: never): C
    getActiveSpan(): OtelSpan | undefined
  }
  readonly context: {
    active(): C
    with<T>(context: C, body: () => T): T
  }
  readonly metrics: { getMeter(name: string, version?: string): OtelMeter }
  readonly SpanKind: { readonly INTERNAL: number }
  readonly SpanStatusCode: { readonly ERROR: number }
}
