/** Compiled, never run: an answer without a result is in the type exactly if it can come. */
import type pg from 'pg'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast, type Duration, type Wait } from '../../src/index.ts'
import type {
  JsonOf,
  OnceAnswer,
  OnceDone,
  OnceOptions,
  OnceRefused,
} from '../../src/entries/once.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

declare function proven<_Proof extends true>(): void

type Done = OnceDone<number>
type Busy = Done | OnceRefused<'in-progress'>
type Mismatch = Done | OnceRefused<'mismatch'>
type Any = Busy | Mismatch
type Answer<O> = OnceAnswer<number, O>
type Waiting<W> = Answer<{ wait: W }>

export function onWaits(): void {
  proven<Same<Waiting<'2 s' | '10ms' | '0.5 s' | '100 days'>, Done>>()
  proven<Same<Waiting<1 | 100 | 'inherit' | true>, Done>>()
  proven<Same<Waiting<undefined>, Done>>()
  proven<Same<Answer<{ keep: '1 h' }>, Done>>()
  proven<Same<Waiting<'nowait'>, Busy>>()
  proven<Same<Waiting<false>, Busy>>()
  proven<Same<Waiting<boolean>, Busy>>()
  proven<Same<Waiting<0>, Busy>>()
  proven<Same<Waiting<'0 ms'>, Busy>>()
  proven<Same<Waiting<'0s'>, Busy>>()
  proven<Same<Waiting<'0.00 days'>, Busy>>()
  proven<Same<Waiting<'2 s' | '0 s'>, Busy>>()
  proven<Same<Waiting<number>, Busy>>()
  proven<Same<Waiting<`${number} s`>, Busy>>()
  proven<Same<Waiting<Duration>, Busy>>()
  proven<Same<Waiting<Wait>, Busy>>()
  proven<Same<Answer<{ wait?: 'nowait' }>, Busy>>()
  proven<Same<Answer<{ wait: '2 s' } | { wait: 'nowait' }>, Busy>>()
}

export function onPayloads(): void {
  proven<Same<Answer<{ payload: string }>, Mismatch>>()
  proven<Same<Answer<{ payload?: unknown }>, Mismatch>>()
  proven<Same<Answer<{ payload: string } | { keep: '1 h' }>, Mismatch>>()
  proven<Same<Answer<Pick<OnceOptions, 'payload' | 'keep'>>, Mismatch>>()
  proven<Same<Answer<OnceOptions>, Any>>()
}

export async function onCalls(
  pool: pg.Pool,
  tx: pg.PoolClient,
  given: { payload?: unknown },
  seconds: number,
): Promise<void> {
  const { once } = createHoldfast(fromPg(pool))
  const body = async (): Promise<number> => await Promise.resolve(1)
  const plain = await once('key', body)
  proven<Same<typeof plain, Done>>()
  const waited = await once('key', body, { wait: '2 s', deadline: '5 s' })
  proven<Same<typeof waited, Done>>()
  const zero = await once('key', body, { wait: '0 ms' })
  proven<Same<typeof zero, Busy>>()
  const inTx = await once(tx, 'key', body, { wait: '0s' })
  proven<Same<typeof inTx, Busy>>()
  const counted = await once('key', body, { wait: `${seconds} s` })
  proven<Same<typeof counted, Busy>>()
  const compared = await once('key', body, given)
  proven<Same<typeof compared, Mismatch>>()
  // @ts-expect-error -- it may be refused
  void compared.result
}

interface Order {
  readonly id: number
  readonly at: Date
  readonly lines: readonly { readonly sku: string; readonly due: Date | null }[]
  readonly note?: string
  readonly cancel: () => void
  readonly missing: undefined
  readonly pair: [Date, () => void]
  readonly size: bigint
}

interface OrderRead {
  readonly id: number
  readonly at: string
  readonly lines: readonly { readonly sku: string; readonly due: string | null }[]
  readonly note?: string
  readonly missing: undefined
  readonly pair: [string, null]
  readonly size: never
}

interface Tree {
  readonly at: Date
  readonly below: readonly Tree[]
}

/** What is kept is JSON, also at the first run. */
export async function onResults(
  pool: pg.Pool,
  tx: pg.PoolClient,
  order: Order,
  tree: Tree,
): Promise<void> {
  const { once } = createHoldfast(fromPg(pool))
  proven<Same<JsonOf<number | string | null | undefined>, number | string | null | undefined>>()
  proven<Same<JsonOf<unknown>, unknown>>()
  proven<Same<JsonOf<void>, void>>()
  proven<Same<JsonOf<'a' | 'b'>, 'a' | 'b'>>()
  const { result } = await once('key', async () => order)
  const read: OrderRead = result
  const same: typeof result = read
  void same
  const inTx = await once(tx, 'key', () => ({ at: new Date() }))
  proven<Same<typeof inTx.result.at, string>>()
  const deep = (await once('key', async () => tree)).result.below[0]?.below[0]?.at
  proven<Same<typeof deep, string | undefined>>()
  const anything = await once('key', async () => JSON.parse('{}'))
  void anything.result.whatever
  // @ts-expect-error -- a date comes back as text
  void inTx.result.at.getTime()
  // @ts-expect-error -- a function does not come back
  void result.cancel
}
