import type { OverTable, PerKey } from '../../../claims/engine.ts'
import type { Executor } from '../../../core/driver.ts'
import { claimedLately, forgetClaims, inFlight, nextTurn, noteClaim, type Share } from './claims.ts'
import type { LeaseLayout, Waiting } from './layout.ts'

/**
 * Whose turn it is, and for how many rows each: keys come one after the other, and go on behind the last one. What is
 * counted stays true, because nobody else writes until the transaction ends.
 */
export class TurnOrder {
  readonly #perKey: NonNullable<OverTable['perKey']>
  #last: string | undefined

  constructor(perKey: NonNullable<OverTable['perKey']>) {
    this.#perKey = perKey
  }

  /** Rows for each key, one more for the first ones where it does not divide. */
  async shares(on: Executor, layout: Waiting, rows: number): Promise<readonly Share[]> {
    const { column } = this.#perKey
    const found: { readonly key: string; readonly room: number }[] = []
    for await (const key of this.#keys(on, layout)) {
      const room = await this.#room(on, layout, key)
      if (room > 0) found.push({ key, room })
      if (found.length === rows) break
    }
    this.#last = found.at(-1)?.key ?? this.#last
    const [each, over] = [Math.floor(rows / found.length), rows % found.length]
    return found.map(({ key, room }, at) => ({
      limit: Math.min(room, each + (at < over ? 1 : 0)),
      turn: { column, key },
    }))
  }

  /** Those behind the last one, then those from the beginning. */
  async *#keys(on: Executor, layout: Waiting): AsyncGenerator<string> {
    const last = this.#last
    const ranges =
      last === undefined
        ? [[undefined, undefined]]
        : [
            [last, undefined],
            [undefined, last],
          ]
    for (const [from, upTo] of ranges) {
      let after = from
      while (true) {
        const [row] = await on.query(nextTurn(layout, this.#perKey.column, after, upTo))
        if (row === undefined) break
        after = String(row['#turn'])
        yield after
      }
    }
  }

  async #room(on: Executor, layout: Waiting, key: string): Promise<number> {
    const { column, limit, rate } = this.#perKey
    const rooms = [Infinity]
    if (limit !== undefined && 'claimed' in layout) {
      const [row] = await on.query(inFlight(layout as LeaseLayout, column, key))
      rooms.push(limit - Number(row?.['n']))
    }
    if (rate !== undefined) {
      const [row] = await on.query(claimedLately(rate.name, key))
      rooms.push(rate.most - Number(row?.['n']))
    }
    return Math.min(...rooms)
  }
}

/** Writes down how many rows of a key were claimed. */
export async function noteClaims(
  on: Executor,
  { name, perMs }: NonNullable<PerKey['rate']>,
  key: string,
  count: number,
): Promise<void> {
  for (let at = 0; at < count; at += 1) await on.query(noteClaim(name, key, perMs))
  if (count > 0) await on.query(forgetClaims)
}
