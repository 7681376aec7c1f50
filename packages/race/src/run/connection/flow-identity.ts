import { AsyncLocalStorage } from 'node:async_hooks'

/** Whose code is running, for connections that several flows share. */
export interface FlowIdentity {
  readonly flow: number
  /** The run is over: what the flow still does is not heard. */
  over: boolean
  /** Its code has come to its end by itself. */
  ended: boolean
}

export const flowIdentity: AsyncLocalStorage<FlowIdentity | undefined> = new AsyncLocalStorage()
