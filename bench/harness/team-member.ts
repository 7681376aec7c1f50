export type ToMember<Setup, Order> =
  | { readonly kind: 'set up'; readonly setup: Setup }
  | { readonly kind: 'get ready'; readonly order: Order }
  | { readonly kind: 'go' }

export type FromMember<Result> =
  | { readonly kind: 'set up' }
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly result: Result }
  | { readonly kind: 'failed'; readonly reason: string }

export interface Member<Order, Result> {
  /** Prepares a round up to the last thing that must not be part of the race; then returns it. */
  ready(order: Order): Promise<() => Promise<Result>>
  close(): Promise<void>
}

/**
 * The child's side of `startTeam`: does what it is told and reports. It ends when its channel to
 * the parent closes, for whatever reason, so that no run leaves processes behind. `index` counts
 * the members from 0.
 */
export function joinTeam<Setup, Order, Result>(
  open: (setup: Setup, index: number) => Promise<Member<Order, Result>>,
): void {
  let member: Member<Order, Result> | undefined
  let go: (() => Promise<Result>) | undefined

  const answer = async (message: ToMember<Setup, Order>): Promise<FromMember<Result>> => {
    if (message.kind === 'set up') {
      member = await open(message.setup, Number(process.argv[2]))
      return { kind: 'set up' }
    }
    if (message.kind === 'get ready') {
      go = await member?.ready(message.order)
      return { kind: 'ready' }
    }
    if (go === undefined) throw new Error('told to go before being ready')
    return { kind: 'done', result: await go() }
  }

  process.on('message', (message: ToMember<Setup, Order>) => {
    const send = (reply: FromMember<Result>): void => {
      if (process.connected) process.send?.(reply)
    }
    answer(message).then(send, (error: unknown) => {
      send({ kind: 'failed', reason: error instanceof Error ? (error.stack ?? '') : String(error) })
    })
  })
  process.on('disconnect', () => {
    const closed = member?.close() ?? Promise.resolve()
    closed.then(
      () => process.exit(0),
      () => process.exit(1),
    )
  })
}
