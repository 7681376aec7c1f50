import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { isHoldfastError } from 'holdfast'
import type { Api } from './plan.ts'

const statusOf = { 'not-enough-credits': 402, 'in-progress': 409, 'already-done': 409 } as const

/**
 * `POST /users/:id/calls` and `POST /users/:id/completions` with `{ "prompt": "…" }`. The client
 * names each request in `Idempotency-Key`, and sends the same name when it tries again.
 */
export function createService(api: Api): Hono {
  const service = new Hono()

  service.post('/users/:id/calls', async (context) => {
    const answer = await api.useCall(context.req.param('id'), requestId(context.req.raw))
    if (answer.ok) return context.json({ left: answer.left })
    return context.json({ error: 'quota-exceeded', retryAt: answer.retryAt }, 429)
  })

  service.post('/users/:id/completions', async (context) => {
    const body = await context.req.json<{ prompt?: unknown } | null>().catch(() => null)
    if (typeof body?.prompt !== 'string')
      throw new HTTPException(400, { message: 'prompt-missing' })
    const answer = await api.complete(
      context.req.param('id'),
      requestId(context.req.raw),
      body.prompt,
    )
    if (answer.ok) return context.json({ text: answer.text, cost: answer.cost })
    return context.json({ error: answer.why }, statusOf[answer.why])
  })

  service.onError((error, context) => {
    if (error instanceof HTTPException) return context.json({ error: error.message }, error.status)
    // Also when the outcome is unknown: the same key is applied at most once.
    if (isHoldfastError(error) && error.retryable) {
      return context.json({ error: 'busy' }, 503, { 'retry-after': '1' })
    }
    console.error(error)
    return context.json({ error: 'internal' }, 500)
  })
  return service
}

function requestId(request: Request): string {
  const id = request.headers.get('idempotency-key') ?? ''
  if (/^[\w-]{8,64}$/.test(id)) return id
  throw new HTTPException(400, { message: 'idempotency-key-missing' })
}
