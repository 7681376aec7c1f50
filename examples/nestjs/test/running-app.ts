import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'

/** What became of a request: an answer, or why there is none. */
export interface Outcome {
  readonly status?: number
  readonly body?: unknown
  readonly headers?: NodeJS.Dict<string | string[]>
  readonly error?: string
}

export interface RunningApp {
  readonly process: ChildProcess
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Outcome>
  get(path: string): Promise<Outcome>
  /** What it has printed so far. */
  said(): string
  /** Resolves with the signal that ended it. */
  readonly ended: Promise<unknown>
}

/** The compiled example as a process; it is killed in the end, if it is still there. */
export async function startApp(main: string, databaseUrl: string): Promise<RunningApp> {
  const env = { ...process.env, DATABASE_URL: databaseUrl, PORT: '0', NODE_ENV: 'production' }
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit').then(([code, signal]: unknown[]) => signal ?? code)
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const url = await listening(child, ended)
  return {
    process: child,
    ended,
    said: () => said,
    post: (path, body, headers = {}) =>
      ask(`${url}/${path}`, 'POST', JSON.stringify(body), headers),
    get: (path) => ask(`${url}/${path}`, 'GET', '', {}),
  }
}

async function listening(child: ChildProcess, ended: Promise<unknown>): Promise<string> {
  let said = ''
  const heard = new Promise<string>((resolve) => {
    const hear = (chunk: Buffer): void => {
      said += chunk.toString()
      const [, url] = /listening on (http:[\w:./[\]]+)/.exec(said) ?? []
      if (url !== undefined) resolve(url)
    }
    child.stdout?.on('data', hear)
    child.stderr?.on('data', hear)
  })
  const gone = ended.then(() => {
    throw new Error(`it did not start: ${said}`)
  })
  return await Promise.race([heard, gone])
}

/** A connection for each: one that is kept may be closed by the server while it is used again. */
const agent = new Agent({ keepAlive: false })

async function ask(
  url: string,
  method: string,
  body: string,
  headers: Record<string, string>,
): Promise<Outcome> {
  return await new Promise((resolve) => {
    const type = body === '' ? {} : { 'content-type': 'application/json' }
    const asking = request(url, { method, agent, headers: { ...type, ...headers } }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('error', ({ message }) => resolve({ error: message }))
      response.on('end', () => {
        const { statusCode = 0, headers: got } = response
        const isJson = /json/.test(got['content-type'] ?? '')
        resolve({ status: statusCode, headers: got, body: isJson ? JSON.parse(text) : text })
      })
    })
    asking.on('error', (error: NodeJS.ErrnoException) => resolve({ error: error.code ?? '' }))
    asking.end(body === '' ? undefined : body)
  })
}
