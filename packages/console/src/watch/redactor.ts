import { signature } from '../auth/secret.ts'
import type { ShownText } from '../core/shown-text.ts'
import type { EngineName } from '../core/wire.ts'
import { maskLiterals } from './mask-literals.ts'
import { shownMetrics } from './mask-metrics.ts'
import { type ReportName, type ReportRules, type Reports, reportRules } from './report-rules.ts'
import type { AnyRule, Masks } from './rule.ts'

/** What is masked before it leaves the server. */
export interface RedactOptions {
  /**
   * Whatever users write: keys, account keys, scopes, ids, notes, errors, and names of applications, leases
   * and schedules. What is declared in code or in the catalogue (namespaces, books, queues, tables, roles)
   * stays. The same text gets the same mask, so that it can still be followed. A function makes masks of
   * its own.
   */
  readonly keys?: boolean | ((text: string) => string)
  /** Values in the text of queries. */
  readonly queries?: boolean
}

/** The only way out: makes text that may be shown of what was read. */
export class Redactor {
  readonly keys: boolean
  readonly queries: boolean
  readonly #rules: ReportRules
  readonly #masks: Masks
  readonly #of: (engine: EngineName) => Redactor

  constructor(
    options: RedactOptions,
    secret: Buffer,
    rules: ReportRules = reportRules,
    engine: EngineName = 'postgres',
  ) {
    const { keys = false, queries = false } = options
    this.keys = keys !== false
    this.queries = queries
    this.#rules = rules
    this.#of = (other) => (other === engine ? this : new Redactor(options, secret, rules, other))
    const mask =
      typeof keys === 'function'
        ? keys
        : (text: string) =>
            `•${signature(secret, 'mask', text).replaceAll(/[-_]/g, '').slice(0, 6)}`
    const text = (shown: string): string => (this.keys && shown !== '' ? mask(shown) : shown)
    this.#masks = {
      on: this.keys,
      engine,
      text,
      name: (shown, namespaces) => (this.keys ? maskedName(shown, namespaces, text) : shown),
      query: (shown) => (queries ? maskLiterals(shown, engine) : shown),
    }
  }

  /** The same masks, for a database of another engine: statements are written differently there. */
  of(engine: EngineName): Redactor {
    return this.#of(engine)
  }

  /** The report as it may be shown. */
  masked<Name extends ReportName>(report: Name, value: Reports[Name]): Reports[Name] {
    if (!this.keys && !this.queries) return value
    return this.#shown(value, this.#rules[report] as AnyRule, undefined) as Reports[Name]
  }

  /** The same as JSON, ready to be sent. */
  json<Name extends ReportName>(report: Name, value: Reports[Name]): ShownText {
    return JSON.stringify(this.masked(report, value)) as ShownText
  }

  /** Metrics in the text format of Prometheus. */
  metrics(text: string): ShownText {
    return shownMetrics(text, this.#masks) as ShownText
  }

  /** What somebody was shown instead of a text. */
  maskOf(text: string): string {
    return this.#masks.text(text)
  }

  /** Undefined is left out of JSON: that is what becomes of everything that no rule is about. */
  #shown(value: unknown, rule: AnyRule | undefined, of: unknown): unknown {
    if (rule === undefined) return this.keys ? undefined : value
    if (value === null) return null
    if (Array.isArray(value)) return value.map((item: unknown) => this.#shown(item, rule, of))
    if (typeof rule === 'function') return rule(value as never, this.#masks, of as never)
    if (typeof rule === 'object') {
      return typeof value === 'object' ? this.#fields(value, rule) : undefined
    }
    if (typeof value === 'string') {
      if (rule === 'query') return this.#masks.query(value)
      return rule === 'plain' ? value : this.#masks.text(value)
    }
    return rule === 'plain' && typeof value !== 'object' ? value : undefined
  }

  #fields(value: object, rules: Readonly<Record<string, AnyRule>>): object {
    return Object.fromEntries(
      Object.entries(value).map(([field, inner]: [string, unknown]) => {
        const rule = Object.hasOwn(rules, field) ? rules[field] : undefined
        return [field, this.#shown(inner, rule, value)]
      }),
    )
  }
}

/** The namespace stays. What looks like a count at the end may be the end of a key, a telephone number for one. */
function maskedName(
  text: string,
  namespaces: readonly (string | undefined)[],
  mask: (text: string) => string,
): string {
  const namespace = namespaces.find((one) => one !== undefined && text.startsWith(`${one}:`))
  const kept = namespace === undefined ? '' : `${namespace}:`
  return `${kept}${mask(text.slice(kept.length))}`
}
