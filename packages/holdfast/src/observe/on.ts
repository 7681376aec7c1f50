import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { EventMap, EventName } from '../core/events/event-map.ts'
import { channelPrefix } from '../core/events.ts'

/**
 * Listens to one event, with its type; the returned function ends it. The same as `subscribe` of
 * `node:diagnostics_channel` on `holdfast:<event>`: the listener runs inside the call, so keep it short.
 *
 * @example const stop = on('lock.timeout', ({ names, blockers }) => log.warn(names, blockers))
 */
export function on<N extends EventName>(
  event: N,
  listener: (message: EventMap[N]) => void,
): () => void {
  const listen = (message: unknown): void => listener(message as EventMap[N])
  subscribe(channelPrefix + event, listen)
  return () => {
    unsubscribe(channelPrefix + event, listen)
  }
}
