import { bearer, type StartedConsole, tokens } from './started-console.ts'

/** One server-sent event. */
export interface ServerEvent {
  readonly id?: string
  readonly event?: string
  readonly data: string
}

/** A stream of events that is read as far as the test wants. */
export interface OpenEvents {
  readonly response: Response
  /** The next event; undefined when the server has ended the stream. */
  next(): Promise<ServerEvent | undefined>
  close(): Promise<void>
}

export async function openEvents(
  { get }: StartedConsole,
  path: string,
  init: RequestInit = bearer(tokens.view),
): Promise<OpenEvents> {
  const abort = new AbortController()
  const response = await get(path, { ...init, signal: abort.signal })
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const next = async (): Promise<ServerEvent | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n')
      if (end === -1) {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
        if (done) return undefined
        text += decoder.decode(value as Uint8Array, { stream: true })
        continue
      }
      const event = parsed(text.slice(0, end))
      text = text.slice(end + 2)
      if (event !== undefined) return event
    }
  }
  return {
    response,
    next,
    async close() {
      abort.abort()
      await reader?.closed.catch(() => undefined)
    },
  }
}

/** As many events as are wanted. */
export async function eventsOf(
  started: StartedConsole,
  path: string,
  { until, init }: { readonly until: number; readonly init?: RequestInit },
): Promise<ServerEvent[]> {
  const events = await openEvents(started, path, init)
  const seen: ServerEvent[] = []
  while (seen.length < until) {
    const event = await events.next()
    if (event === undefined) break
    seen.push(event)
  }
  await events.close()
  return seen
}

/** Undefined for comments and `retry`. */
function parsed(block: string): ServerEvent | undefined {
  const fields = Object.fromEntries(
    block
      .split('\n')
      .filter((line) => /^(id|event|data): /.test(line))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  ) as Record<string, string>
  return fields['data'] === undefined ? undefined : { data: fields['data'], ...fields }
}
