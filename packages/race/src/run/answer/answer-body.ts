/** Answers of HTTP, whose bodies have to be read before they can be compared. */

type WithBody = Request | Response | Blob

export function hasBody(value: object): value is WithBody {
  return value instanceof Response || value instanceof Request || value instanceof Blob
}

export interface ReadBody {
  readonly head: Readonly<Record<string, unknown>>
  /** Undefined if it was read by somebody else; null if there is none. */
  readonly body: string | null | undefined
}

/** Whoever gets the answer later can still read it. */
export async function bodyOf(value: WithBody): Promise<ReadBody> {
  if (value instanceof Blob) {
    const { type } = value
    return { head: type === '' ? {} : { type }, body: textOf(await value.arrayBuffer()) }
  }
  const head = { ...lineOf(value), ...headersOf(value) }
  if (value.body === null) return { head, body: null }
  if (value.bodyUsed || value.body.locked) return { head, body: undefined }
  return { head, body: textOf(await value.clone().arrayBuffer()) }
}

function lineOf(value: Request | Response): Readonly<Record<string, unknown>> {
  if (value instanceof Request) return { method: value.method, url: value.url }
  return { status: value.status, ...(value.statusText !== '' && { statusText: value.statusText }) }
}

function headersOf({ headers }: Request | Response): Readonly<Record<string, unknown>> {
  const all = [...headers]
  return all.length === 0 ? {} : { headers: Object.fromEntries(namedOnce(all)) }
}

/** Cookies come one by one under the same name. */
function namedOnce(all: readonly (readonly [string, string])[]): Map<string, string> {
  const found = new Map<string, string>()
  for (const [name, value] of all) {
    const before = found.get(name)
    found.set(name, before === undefined ? value : `${before}\n${value}`)
  }
  return found
}

function textOf(bytes: ArrayBuffer): string {
  const text = Buffer.from(bytes).toString()
  return text.includes('\uFFFD') ? Buffer.from(bytes).toString('base64') : text
}
