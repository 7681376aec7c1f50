import type { Movement } from '../../checks/check-ledger.ts'
import type { Operation } from '../../history/operations-of.ts'
import type { EndAsked, LedgerAnswer, LedgerAsked } from '../../workloads/ledger-answer.ts'
import { operation } from './operation.ts'

/** A small ledger that is honest, and the history of those who used it: a test changes one thing in it. */
export class LedgerStory {
  readonly operations: Operation[] = []
  readonly movements: Movement[] = []
  readonly #book: string
  readonly #limit: number
  #clock = 0

  constructor(book: string, limit: number) {
    this.#book = book
    this.#limit = limit
  }

  /** What the history says at that place, counted from the end if below zero. */
  at(place: number): Operation {
    const found = this.operations.at(place)
    if (found === undefined) throw new Error('the story is not that long')
    return found
  }

  last(key: string): Movement | undefined {
    return this.movements.filter((movement) => movement.key === key).at(-1)
  }

  /** Books a movement, whether or not it is allowed. */
  book(key: string, operationId: string, change: Partial<Movement>): Movement {
    const { seq = 0, credited = 0, debited = 0, held = 0 } = this.last(key) ?? {}
    const { credit = 0, debit = 0, hold = 0 } = change
    const movement: Movement = {
      account: `account of ${key}`,
      book: this.#book,
      key,
      seq: seq + 1,
      kind: 2,
      credit,
      debit,
      hold,
      credited: credited + credit,
      debited: debited + debit,
      held: held + hold,
      allowance: this.#limit,
      operationId,
      holdId: null,
      ...change,
    }
    this.movements.push(movement)
    return movement
  }

  /** Somebody uses up so much and is told the truth. */
  consume(key: string, id: string, amount: number): Operation {
    return this.order('consume', [{ key, amount }], id)
  }

  order(
    name: string,
    lines: readonly { readonly key: string; readonly amount: number }[],
    id: string,
    change: 'debit' | 'credit' | 'hold' = 'debit',
  ): Operation {
    const available = (key: string): number => {
      const { credited = 0, debited = 0, held = 0 } = this.last(key) ?? {}
      return credited - debited - held + this.#limit
    }
    const fits = change === 'credit' || lines.every(({ key, amount }) => amount <= available(key))
    const states = lines.map(({ key, amount }) => {
      const short = change !== 'credit' && amount > available(key)
      const movement = fits
        ? this.book(key, id, {
            [change]: amount,
            ...(change === 'hold' ? { kind: 3, holdId: uuid(id) } : {}),
          })
        : this.last(key)
      return {
        key,
        refusal: short ? 'insufficient' : undefined,
        sequence: movement?.seq ?? 0,
        credited: movement?.credited ?? 0,
        debited: movement?.debited ?? 0,
        held: movement?.held ?? 0,
        allowance: this.#limit,
      }
    })
    const answered: LedgerAnswer = {
      replayed: false,
      ...(fits ? {} : { reason: 'insufficient' }),
      ...(change === 'hold' && fits ? { holdId: `0ab-${uuid(id)}` } : {}),
      lines: states,
    }
    const asked: LedgerAsked = { lines: lines.map((line) => ({ ...line, book: this.#book })) }
    return this.tell({
      operation: name,
      key: lines[0]?.key ?? '',
      id,
      outcome: fits ? 'ok' : 'refused',
      asked,
      answered,
    })
  }

  /** Somebody settles or releases a hold of one line, and is told the truth. */
  end(
    name: 'settle' | 'release',
    key: string,
    id: string,
    held: number,
    charge: number,
  ): Operation {
    const movement = this.book(key, id, {
      kind: name === 'settle' ? 4 : 5,
      debit: charge,
      hold: -held,
      holdId: uuid(id),
    })
    const { seq: sequence, credited, debited, allowance } = movement
    const line = {
      key,
      refusal: undefined,
      sequence,
      credited,
      debited,
      held: movement.held,
      allowance,
    }
    const asked: EndAsked = { holdId: `0ab-${uuid(id)}`, charge, lines: 1 }
    const answered: LedgerAnswer = { replayed: false, lines: [line] }
    return this.tell({ operation: name, key, outcome: 'ok', asked, answered })
  }

  /** Writes down what somebody was told. */
  tell(facts: Parameters<typeof operation>[0]): Operation {
    this.#clock += 10
    const told = operation({ began: this.#clock, ...facts })
    this.operations.push(told)
    return told
  }

  /** The same asked once more, and answered as it should be. */
  again(first: Operation): Operation {
    const answered = { ...(first.answered as LedgerAnswer), replayed: true }
    const { operation: name, key, id, asked, outcome } = first
    return this.tell({ operation: name, key, id, asked, outcome, answered })
  }

  /** Somebody was told otherwise. */
  retell(first: Operation, facts: Partial<Operation>): void {
    const at = this.operations.indexOf(first)
    this.operations[at] = { ...first, ...facts }
  }
}

function uuid(id: string): string {
  return `uuid-of-${id}`
}
