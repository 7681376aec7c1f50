import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Movement } from './audit-trail.ts'
import type { Line, Outcome, Shop } from './shop.ts'

interface Answer {
  readonly status: number
  readonly body: unknown
}

/** The status of each outcome. 200 and 201 tell a marketplace to stop sending. */
const statuses: Readonly<Record<Outcome['is'], number>> = {
  done: 201,
  repeated: 200,
  short: 409,
  refused: 422,
}

/** `POST /deliveries`, `/orders`, `/returns`; `GET /skus/:sku/movements`. */
export function createService(
  shop: Shop,
  auditTrail: ((sku: string) => Promise<Movement[]>) | undefined,
): Server {
  return createServer((request, response) => {
    answer(shop, auditTrail, request)
      .catch((error: unknown): Answer => {
        console.error(error)
        return { status: 500, body: { error: 'internal' } }
      })
      .then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(body))
      })
      .catch((error: unknown) => {
        console.error(error)
        response.destroy()
      })
  })
}

async function answer(
  shop: Shop,
  auditTrail: ((sku: string) => Promise<Movement[]>) | undefined,
  request: IncomingMessage,
): Promise<Answer> {
  const { url = '', method } = request
  const [, sku] = /^\/skus\/([\w-]{1,64})\/movements$/.exec(url) ?? []
  if (sku !== undefined && auditTrail !== undefined) {
    return { status: 200, body: await auditTrail(sku) }
  }
  const take = routes.get(url)
  if (take === undefined) return { status: 404, body: { error: 'not-found' } }
  if (method !== 'POST') return { status: 405, body: { error: 'use-post' } }
  const message = messageOf(await bodyOf(request))
  if (message === undefined) return { status: 400, body: { error: 'not-understood' } }
  const outcome = await take(shop, message)
  return { status: statuses[outcome.is], body: outcome }
}

/** What all messages have; those without an order or a source get an empty one. */
interface Message {
  readonly id: string
  readonly orderId: string
  readonly source: string
  readonly lines: readonly Line[]
}

const routes: ReadonlyMap<string, (shop: Shop, message: Message) => Promise<Outcome>> = new Map([
  ['/deliveries', (shop, message) => shop.deliver(message)],
  ['/orders', (shop, message) => shop.takeOrder(message)],
  ['/returns', (shop, message) => shop.takeReturn(message)],
])

const maxBodyLength = 10_000

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk as string
    if (text.length > maxBodyLength) return ''
  }
  return text
}

function messageOf(text: string): Message | undefined {
  try {
    const { id, orderId = 'none', source = 'web', lines } = JSON.parse(text)
    const understood =
      [id, orderId, source].every(isName) &&
      Array.isArray(lines) &&
      lines.length > 0 &&
      lines.every((line) => isName(line.sku) && isQuantity(line.quantity))
    if (!understood) return undefined
    return {
      id,
      orderId,
      source,
      lines: lines.map(({ sku, quantity }: Line) => ({ sku, quantity })),
    }
  } catch {
    return undefined
  }
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && /^[\w:-]{1,64}$/.test(value)
}

function isQuantity(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) < 1_000_000
}
