import type { Unit } from './ledger-command.ts'
import { windowAt } from './ledger-calendar.ts'

/** A limit as the model knows it. */
export type ModelSpan =
  | { readonly unit: Unit; readonly zone: string }
  | { readonly rateUs: number; readonly burst: number | undefined }

/** What is expected of a call. */
export interface ModelVerdict {
  readonly ok: boolean
  readonly available: number
  readonly resetsUs: number
  readonly retryUs: number | undefined
}

interface Row {
  /** What was used in a window. */
  readonly used: number
  /** When that is over. */
  readonly untilUs: number
  /** Of a rate, in how long one of what was used comes back. */
  readonly every: number
}

/** A rate limit in plain words: one row for each key, by a clock that is given. */
export class LimitModel {
  readonly #span: ModelSpan
  readonly #rows = new Map<string, Row>()

  constructor(span: ModelSpan) {
    this.#span = span
  }

  consume(key: string, cost: number, limit: number, nowUs: number): ModelVerdict {
    return 'unit' in this.#span
      ? this.#inWindow(this.#span, key, cost, limit, nowUs, true)
      : this.#atRate(this.#span, key, cost, limit, nowUs, true)
  }

  peek(key: string, cost: number, limit: number, nowUs: number): ModelVerdict {
    return 'unit' in this.#span
      ? this.#inWindow(this.#span, key, cost, limit, nowUs, false)
      : this.#atRate(this.#span, key, cost, limit, nowUs, false)
  }

  reset(key: string): void {
    this.#rows.delete(key)
  }

  /** What is over is gone, also if the clock is set back after that. */
  forget(nowUs: number): void {
    for (const [key, { untilUs }] of this.#rows) if (untilUs < nowUs) this.#rows.delete(key)
  }

  #inWindow(
    { unit, zone }: Extract<ModelSpan, { unit: Unit }>,
    key: string,
    cost: number,
    limit: number,
    nowUs: number,
    takes: boolean,
  ): ModelVerdict {
    const { end } = windowAt(unit, zone, nowUs)
    const row = this.#rows.get(key)
    const isOver = row === undefined || row.untilUs <= nowUs
    // From a clock that was more than a window ahead: what was used then counts until this one ends.
    const isFar = !isOver && row.untilUs > windowAt(unit, zone, end).end
    const untilUs = isOver || isFar ? end : row.untilUs
    const before = isOver ? 0 : row.used
    const ok = before + cost <= limit
    const used = ok && takes ? before + cost : before
    if (takes && (ok || isFar)) this.#rows.set(key, { used, untilUs, every: 1 })
    const retryUs = ok || cost > limit ? undefined : untilUs
    return { ok, available: Math.max(0, limit - used), resetsUs: untilUs, retryUs }
  }

  #atRate(
    { rateUs, burst = Number.NaN }: Extract<ModelSpan, { rateUs: number }>,
    key: string,
    cost: number,
    limit: number,
    nowUs: number,
    takes: boolean,
  ): ModelVerdict {
    const every = Math.ceil(rateUs / limit)
    const most = Number.isNaN(burst) ? limit : burst
    const row = this.#rows.get(key) ?? { used: 0, untilUs: nowUs, every }
    const left = Math.max(0, row.untilUs - nowUs)
    // As many units as were used, whatever the rate is now; and never more than empties it.
    const before = Math.min(
      row.every === every ? left : Math.ceil((left / row.every) * every - rounding),
      most * every,
    )
    const ok = before + cost * every <= most * every
    const after = ok && takes ? before + cost * every : before
    const isOther = left > 0 && (row.every !== every || left > most * every)
    if (takes && (ok || isOther)) {
      this.#rows.set(key, { used: 0, untilUs: nowUs + after, every })
    }
    const retryUs = ok || cost > most ? undefined : nowUs + after + cost * every - most * every
    const told = { ok, available: Math.floor((most * every - after) / every) }
    if (takes || !isOther) return { ...told, resetsUs: nowUs + after, retryUs }
    // A look leaves the row as it is: it may be met in this state, or in the one that the next call makes of it.
    const untouchedUs = row.untilUs - Math.floor((most - cost) * row.every)
    return {
      ...told,
      resetsUs: Math.max(nowUs + after, row.untilUs),
      retryUs: retryUs === undefined ? undefined : Math.max(retryUs, untouchedUs),
    }
  }
}

/** Of divisions in floating point: times of the tests are whole microseconds below 2^40. */
const rounding = 1e-6
