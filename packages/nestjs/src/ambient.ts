import { AsyncLocalStorage } from 'node:async_hooks'

/** How the transaction around a call is found, so that it need not be passed on. */
export interface AmbientTransactions<Tx> {
  /** The transaction that is open around this call, if one is. */
  find(): Tx | undefined
  /** Runs the body with this transaction as the one that is found. */
  run<T>(tx: Tx, body: () => Promise<T>): Promise<T>
}

interface Place<Tx> {
  tx: Tx | undefined
}

/** Kept by Node along the calls. Each application has its own. */
export function ownTransactions<Tx>(): AmbientTransactions<Tx> {
  const store = new AsyncLocalStorage<Place<Tx>>()
  return {
    find: () => store.getStore()?.tx,
    async run(tx, body) {
      const place: Place<Tx> = { tx }
      try {
        return await store.run(place, body)
      } finally {
        // What the body left behind is not in the transaction any more.
        place.tx = undefined
      }
    },
  }
}
