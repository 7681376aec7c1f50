import { Refusal } from '../core/refusals.ts'

const most = { urlLength: 4_096, parameters: 16, valueLength: 1_024, bodyBytes: 4_096 }
const bodyMs = 5_000

/** The address of a request, if it is of a size that we read. */
export function checkedUrl(text: string): URL {
  if (text.length > most.urlLength) throw new Refusal('URL_TOO_LONG')
  const url = URL.parse(text)
  if (url === null) throw new Refusal('BAD_REQUEST')
  let count = 0
  for (const [, value] of url.searchParams) {
    count += 1
    // A NUL cannot be sent to PostgreSQL, which would answer with an error of its own.
    if (count > most.parameters || value.length > most.valueLength || value.includes('\0')) {
      throw new Refusal('BAD_REQUEST')
    }
  }
  return url
}

/** A text parameter. */
export function textOf(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name)
  return value === null || value === '' ? undefined : value
}

/** A whole number between 1 and `atMost`. */
export function countOf(
  query: URLSearchParams,
  name: string,
  { atMost, otherwise }: { readonly atMost: number; readonly otherwise: number },
): number {
  const text = textOf(query, name)
  if (text === undefined) return otherwise
  const count = /^[1-9]\d{0,6}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > atMost) throw new Refusal('BAD_REQUEST')
  return count
}

/** The object in the body of a request: JSON, small, and sent at once. */
export async function bodyOf(request: Request): Promise<Readonly<Record<string, unknown>>> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) throw new Refusal('CONTENT_TYPE')
  if (Number(request.headers.get('content-length') ?? 0) > most.bodyBytes) {
    throw new Refusal('BODY_TOO_LARGE')
  }
  const text = await boundedText(request.body)
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  } catch {
    // Said below.
  }
  throw new Refusal('BAD_REQUEST')
}

async function boundedText(body: ReadableStream<Uint8Array> | null): Promise<string> {
  if (body === null) return ''
  const reader = body.getReader()
  const tooSlow = Promise.withResolvers<never>()
  const timer = setTimeout(() => tooSlow.reject(new Refusal('BODY_TOO_SLOW')), bodyMs)
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), tooSlow.promise])
      if (done) return new TextDecoder().decode(Buffer.concat(chunks))
      size += value.byteLength
      if (size > most.bodyBytes) throw new Refusal('BODY_TOO_LARGE')
      chunks.push(value)
    }
  } catch (error) {
    // Not cancelled: that would break the connection before the answer is out.
    throw error instanceof Refusal ? error : new Refusal('BAD_REQUEST')
  } finally {
    clearTimeout(timer)
  }
}
