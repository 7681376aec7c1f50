import { type ComponentChildren, createContext, type JSX } from 'preact'
import { useContext } from 'preact/hooks'
import { length } from '../format.ts'
import { useNow } from '../ticker.ts'

/** When the data around came, by this machine's clock; absent in a picture of the past, which stands still. */
export const ReceivedAt = createContext<number | undefined>(undefined)

/** A length that grows while one looks: with each new tree, or each second inside of `Growing`. */
export function Age({ ms }: { readonly ms: number }): JSX.Element {
  return <>{useAge(ms)}</>
}

export function useAge(ms: number, write: (ms: number) => string = length): string {
  const receivedAt = useContext(ReceivedAt)
  return write(receivedAt === undefined ? ms : ms + Math.max(0, Date.now() - receivedAt))
}

/** Lets ages grow inside of it, where data comes less often than each second. */
export function Growing(props: {
  readonly since: number | undefined
  readonly children: () => ComponentChildren
}): JSX.Element {
  useNow(props.since === undefined)
  return <ReceivedAt.Provider value={props.since}>{props.children()}</ReceivedAt.Provider>
}
