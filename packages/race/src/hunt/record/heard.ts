/** What other machines have answered in the recording, and what is answered from it. */

/** What the other side answered. Plain data. */
export interface Heard {
  readonly method: string
  readonly url: string
  readonly body: string
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly text: string
}

/** A request that is to be answered. */
export type Asking = Pick<Heard, 'method' | 'url' | 'body'>

/** What was heard already; what is heard is added. */
export interface HeardList {
  push(one: Heard): unknown
  readonly all: readonly Heard[]
}

/** Keeps what is heard in this process. */
export function keptHere(all: Heard[] = []): HeardList {
  return { all, push: (one) => all.push(one) }
}

/** What was heard of the same request, else of one to the same place with other values. */
export function findHeard(
  heard: readonly Heard[],
  { method, url, body }: Asking,
): Heard | undefined {
  const alike = heard.filter((one) => one.method === method && placeOf(one.url) === placeOf(url))
  return alike.find((one) => one.url === url && one.body === body) ?? alike[0]
}

/** Without what belongs to the text as it was sent. */
export function answerHeaders({ headers }: Heard): [string, string][] {
  const ofSending = /^(?:content-(?:encoding|length)|transfer-encoding|connection|keep-alive)$/
  return headers.flatMap(([name, value]): [string, string][] =>
    ofSending.test(name) ? [] : [[name, value]],
  )
}

/** Statuses that come without a body. */
export function hasBody({ status }: Heard): boolean {
  return ![204, 205, 304].includes(status)
}

export function notSent({ method, url }: Asking): Error {
  return new Error(
    `hunt() has not sent this ${method} to ${new URL(url).host}: it sends to other machines only while it records, and has no answer of this one. Use a server of your own on 127.0.0.1, or elsewhere: 'send'`,
  )
}

function placeOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}
