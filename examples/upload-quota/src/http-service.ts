import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type Answer, answerError } from './answer-error.ts'
import type { NewImage } from './quota.ts'

export type Upload = (image: NewImage) => Promise<void>

/** `POST /users/:id/images` with `{ "byteSize": n }`. */
export function createService(upload: Upload): Server {
  return createServer((request, response) => {
    answer(upload, request)
      .catch((error: unknown): Answer => {
        console.error(error)
        return { status: 500, body: { error: 'internal' } }
      })
      .then(({ status, headers, body }) => {
        response.writeHead(status, { 'content-type': 'application/json', ...headers })
        response.end(JSON.stringify(body))
      })
      .catch((error: unknown) => {
        console.error(error)
        response.destroy()
      })
  })
}

async function answer(upload: Upload, request: IncomingMessage): Promise<Answer> {
  const [, userId] = /^\/users\/([\w-]{1,64})\/images$/.exec(request.url ?? '') ?? []
  if (userId === undefined) return { status: 404, body: { error: 'not-found' } }
  if (request.method !== 'POST') return { status: 405, body: { error: 'use-post' } }
  const byteSize = byteSizeOf(await bodyOf(request))
  if (byteSize === undefined) return { status: 400, body: { error: 'byteSize-missing' } }
  const image: NewImage = { id: randomUUID(), userId, byteSize }
  try {
    await upload(image)
    return { status: 201, body: { id: image.id } }
  } catch (error) {
    return answerError(error, image)
  }
}

const maxBodyLength = 1_000

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk as string
    if (text.length > maxBodyLength) return ''
  }
  return text
}

function byteSizeOf(text: string): number | undefined {
  try {
    const { byteSize } = JSON.parse(text) as { byteSize?: unknown }
    const fits = Number.isInteger(byteSize) && Number(byteSize) > 0 && Number(byteSize) < 2 ** 31
    return fits ? Number(byteSize) : undefined
  } catch {
    return undefined
  }
}
