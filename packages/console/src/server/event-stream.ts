import type { Frame, TreeFeed } from '../watch/tree-feed.ts'
import { explain } from './explain.ts'

export interface EventStreamOptions {
  readonly lastEventId: string | null
  /** Looked at with every heartbeat. */
  readonly stillValid: () => Promise<boolean>
  /** The client has gone. */
  readonly signal: AbortSignal
  /** Called once, when it is over. */
  readonly onEnd: () => void
}

/** What happens after seconds and minutes; tests have less. */
export interface StreamTimes {
  readonly heartbeatMs: number
  readonly lifetimeMs: number
  readonly slowMs: number
}

export const streamTimes: StreamTimes = {
  heartbeatMs: 10_000,
  lifetimeMs: 600_000,
  slowMs: 15_000,
}

/** As much as may lie about for one listener; a tree that finds it full is left out. */
const roomBytes = 262_144

/** Server-sent events of one listener. */
export function eventStream(
  feed: TreeFeed,
  { lastEventId, stillValid, signal, onEnd }: EventStreamOptions,
  times: StreamTimes = streamTimes,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const startedMs = performance.now()
  let fullSinceMs: number | undefined
  let sent = lastEventId
  let stop = (): void => undefined

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let over = false
        const end = (reason?: string): void => {
          if (over) return
          over = true
          stop()
          if (reason !== undefined) write(`event: bye\ndata: {"reason":"${reason}"}\n\n`)
          try {
            controller.close()
          } catch {
            // The client has cancelled it already.
          }
          onEnd()
        }
        const write = (text: string): void => send(encoder.encode(text))
        const send = (bytes: Uint8Array): void => {
          try {
            controller.enqueue(bytes)
          } catch {
            // The client has cancelled it; the end is told by `cancel`.
          }
        }
        /** Whether the listener reads. One that does not is skipped, and in the end dropped. */
        const hasRoom = (): boolean => {
          if ((controller.desiredSize ?? 0) > 0) {
            fullSinceMs = undefined
            return true
          }
          fullSinceMs ??= performance.now()
          if (performance.now() - fullSinceMs >= times.slowMs) end('slow')
          return false
        }
        const tree = (frame: Frame): void => {
          if (over || frame.id === sent || !hasRoom()) return
          sent = frame.id
          send(frame.bytes)
        }
        const trouble = (error: unknown): void => {
          if (over || !hasRoom()) return
          write(`event: trouble\ndata: ${JSON.stringify({ error: explain(error).body })}\n\n`)
        }
        const beat = setInterval(() => {
          // Whoever cannot be asked has not said that it may go on.
          stillValid().then(
            (valid) => (valid ? undefined : end('expired')),
            () => end('expired'),
          )
          if (performance.now() - startedMs >= times.lifetimeMs) end('lifetime')
          else if (hasRoom()) write(': \n\n')
        }, times.heartbeatMs)
        beat.unref()
        const leave = feed.listen({ tree, trouble, closing: () => end('closing') })
        const gone = (): void => end()
        signal.addEventListener('abort', gone, { once: true })
        stop = () => {
          clearInterval(beat)
          leave()
          signal.removeEventListener('abort', gone)
        }
        // Says at once that it works, and how soon to come back.
        write('retry: 1000\n\n')
        const fresh = feed.fresh()
        if (fresh !== undefined) tree(fresh)
        if (signal.aborted) end()
      },
      cancel() {
        stop()
        onEnd()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: roomBytes }),
  )
}
