import { signature } from '../auth/secret.ts'
import { maskLiterals } from './mask-literals.ts'
import { type ReportName, reports, type Rule } from './report-rules.ts'

/** What is masked before it leaves the server. */
export interface RedactOptions {
  /**
   * Parts of keys, account keys, scopes, ids and notes; what they belong to (namespace, book, table) stays.
   * The same text gets the same mask, so that it can still be followed. A function makes masks of its own.
   */
  readonly keys?: boolean | ((text: string) => string)
  /** Values in the text of queries. */
  readonly queries?: boolean
}

/** Takes out of a report what the options say. */
export class Redactor {
  readonly keys: boolean
  readonly queries: boolean
  readonly #mask: (text: string) => string

  constructor({ keys = false, queries = false }: RedactOptions, secret: Buffer) {
    this.keys = keys !== false
    this.queries = queries
    this.#mask =
      typeof keys === 'function'
        ? keys
        : (text) => `•${signature(secret, 'mask', text).replaceAll(/[-_]/g, '').slice(0, 6)}`
  }

  /** The report as it may be shown. */
  masked<T extends object>(report: ReportName, value: T): T {
    if (!this.keys && !this.queries) return value
    const seen = new Map<string, string>()
    const masked = this.#walk(value, reports[report], seen)
    // Sentences are last: by now it is known what must not be in them.
    return this.#sentences(masked, reports[report], seen) as T
  }

  #walk(value: unknown, rule: Rule, seen: Map<string, string>): unknown {
    if (typeof value === 'string') return this.#text(value, rule, seen)
    if (Array.isArray(value)) return value.map((item) => this.#walk(item, rule, seen))
    if (typeof value !== 'object' || value === null) return value
    const rules = typeof rule === 'string' ? {} : rule
    const namespaced = 'kind' in value && !['named', 'advisory'].includes(String(value.kind))
    return Object.fromEntries(
      Object.entries(value).map(([field, inner]: [string, unknown]) => {
        const own = Object.hasOwn(rules, field) ? (rules[field] ?? 'secret') : 'secret'
        // The name of a row or table lock is that of a table.
        return [field, this.#walk(inner, own === 'name' && namespaced ? 'plain' : own, seen)]
      }),
    )
  }

  #text(text: string, rule: Rule, seen: Map<string, string>): string {
    if (rule === 'query') return this.queries ? maskLiterals(text) : text
    if (rule === 'plain' || rule === 'sentence' || !this.keys || text === '') return text
    const masked = rule === 'name' ? this.#name(text) : this.#mask(text)
    seen.set(text, masked)
    return masked
  }

  /** `cart:7 +2` becomes `cart:•k3Zf9a +2`, `advisory 42 (not ours)` loses its number. */
  #name(text: string): string {
    const [, more = ''] = / (\+\d+)$/.exec(text) ?? []
    const name = more === '' ? text : text.slice(0, -more.length - 1)
    const colon = name.indexOf(':')
    const kept = colon === -1 ? '' : name.slice(0, colon + 1)
    const masked = `${kept}${this.#mask(name.slice(kept.length))}`
    return more === '' ? masked : `${masked} ${more}`
  }

  #sentences(value: unknown, rule: Rule, seen: ReadonlyMap<string, string>): unknown {
    if (typeof value === 'string') {
      if (rule !== 'sentence') return value
      let text = value
      const longestFirst = [...seen].toSorted(([a], [b]) => b.length - a.length)
      for (const [original, masked] of longestFirst) text = text.replaceAll(original, () => masked)
      return text
    }
    if (Array.isArray(value)) return value.map((item) => this.#sentences(item, rule, seen))
    if (typeof value !== 'object' || value === null) return value
    const rules = typeof rule === 'string' ? {} : rule
    return Object.fromEntries(
      Object.entries(value).map(([field, inner]: [string, unknown]) => [
        field,
        this.#sentences(inner, rules[field] ?? 'secret', seen),
      ]),
    )
  }
}
