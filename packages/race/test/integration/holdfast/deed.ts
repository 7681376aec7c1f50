import { fromPg } from '../../../../holdfast/src/drivers/pg.ts'
import { createHoldfast, type HoldfastOptions } from '../../../../holdfast/src/index.ts'
import type { Flow } from '../../../src/run/options.ts'
import type { OwnHoldfast, Tx } from './ledger-stage.ts'

/** Something to do with the ledger, in the caller's transaction if there is one. */
export type Deed = (hf: OwnHoldfast, tx: Tx | undefined) => Promise<unknown>

/** What can be done, by name. The id is for operations that have one. */
export type Deeds = Readonly<Record<string, (id: string) => Deed>>

/** In a transaction of its own, as one call. */
export function alone(deed: Deed, options?: HoldfastOptions): Flow {
  return async ({ pool }) => told(await deed(createHoldfast(fromPg(pool), options), undefined))
}

/** In a transaction of the caller's: BEGIN, the call, COMMIT. */
export function joined(deed: Deed): Flow {
  return async ({ pool }) => {
    const hf = createHoldfast(fromPg(pool))
    return told(await hf.transaction((tx) => deed(hf, tx)))
  }
}

/** Calls a method of a face, with or without a transaction. */
export async function call(
  method: (...args: never[]) => Promise<unknown>,
  tx: Tx | undefined,
  ...args: readonly unknown[]
): Promise<unknown> {
  return await method(...([...(tx === undefined ? [] : [tx]), ...args] as never[]))
}

const words = [
  'ok',
  'replayed',
  'reason',
  'field',
  'state',
  'available',
  'credited',
  'debited',
  'held',
  'allowance',
  'sequence',
]

/** A verdict without its moments, which are of chance. */
export function told(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('ok' in value)) return value
  return Object.fromEntries(words.map((word) => [word, Reflect.get(value, word)]))
}

/** Every two of them, and each with itself. */
export function pairsOf(deeds: Deeds): [string, string][] {
  const names = Object.keys(deeds)
  return names.flatMap((one, at) => names.slice(at).map((other): [string, string] => [one, other]))
}

/** Every three different ones of them. */
export function triplesOf(names: readonly string[]): [string, string, string][] {
  return names.flatMap((one, first) =>
    names
      .slice(first + 1)
      .flatMap((two, second) =>
        names.slice(first + second + 2).map((three): [string, string, string] => [one, two, three]),
      ),
  )
}

/** Flows that do so at the same time: the last one in a transaction of its caller's. */
export function flowsOf(deeds: Deeds, names: readonly string[]): Record<string, Flow> {
  return Object.fromEntries(
    names.map((name, at) => {
      const deed = deeds[name]?.(`id ${at}`)
      if (deed === undefined) throw new Error(`nobody knows how to ${name}`)
      const last = at === names.length - 1 && name !== 'sweep'
      return [`${name} ${at + 1}`, last ? joined(deed) : alone(deed)]
    }),
  )
}
