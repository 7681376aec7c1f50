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
  /** Of a window what was used, of a rate when nothing of it is used any more. */
  used: number
  untilUs: number
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
    const before = isOver ? 0 : row.used
    const ok = before + cost <= limit
    const used = ok && takes ? before + cost : before
    if (ok && takes) {
      // From a clock that was more than a window ahead: what was used then counts until this one ends.
      const isFar = !isOver && row.untilUs > windowAt(unit, zone, end).end
      this.#rows.set(key, { used, untilUs: isOver || isFar ? end : row.untilUs })
    }
    const retryUs = ok || cost > limit ? undefined : end
    return { ok, available: Math.max(0, limit - used), resetsUs: end, retryUs }
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
    const owed = (this.#rows.get(key)?.used ?? 0) - nowUs
    // Never more than empties it, whatever the limit was before and wherever the clock has been.
    const before = Math.min(Math.max(0, owed), most * every)
    const ok = before + cost * every <= most * every
    const after = ok && takes ? before + cost * every : before
    if (ok && takes) this.#rows.set(key, { used: nowUs + after, untilUs: nowUs + after })
    const retryUs = ok || cost > most ? undefined : nowUs + after + cost * every - most * every
    return {
      ok,
      available: Math.floor((most * every - after) / every),
      resetsUs: nowUs + after,
      retryUs,
    }
  }
}
