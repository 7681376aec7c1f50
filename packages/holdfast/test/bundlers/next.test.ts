/** The packed library in Next: in development with an edit in between, built, and started. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { waitUntil } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { firstHour, installedProject, type PackedProject } from '../support/packed-project.ts'
import { emptyDatabase, everything } from './on-empty-database.ts'

let project: PackedProject
let server: ChildProcess | undefined

const route = (edition: number): string => `
import { firstHour } from '../../../first-hour.mjs'
export const dynamic = 'force-dynamic'
export async function GET() {
  return Response.json({ edition: ${edition}, ...(await firstHour(process.env.DATABASE_URL)) })
}`

beforeAll(async () => {
  project = await installedProject(['pg@8', 'next@16', 'react@19', 'react-dom@19'])
  await project.write({
    'first-hour.mjs': firstHour,
    'app/layout.js':
      'export default function Layout({ children }) { return <html><body>{children}</body></html> }',
    'app/page.js': 'export default function Page() { return <p>there</p> }',
    'app/api/hour/route.js': route(1),
    'next.config.mjs': 'export default { turbopack: { root: import.meta.dirname } }',
  })
}, 600_000)

afterEach(() => stop())

afterAll(async () => {
  await project[Symbol.asyncDispose]()
})

async function stop(): Promise<void> {
  const { pid } = server ?? {}
  if (server === undefined || pid === undefined) return
  const ended = once(server, 'exit')
  // Next starts processes of its own, in the same group.
  if (server.exitCode === null) process.kill(-pid, 'SIGKILL')
  else return
  await ended
  server = undefined
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  return port
}

/** Starts `next dev` or `next start`; the answer of the route as soon as there is one. */
async function started(command: 'dev' | 'start'): Promise<() => Promise<unknown>> {
  const port = await freePort()
  const env = {
    ...process.env,
    NODE_ENV: command === 'dev' ? 'development' : 'production',
    NEXT_TELEMETRY_DISABLED: '1',
    DATABASE_URL: await emptyDatabase(),
  }
  server = spawn('npx', ['next', command, '-H', '127.0.0.1', '-p', String(port)], {
    cwd: project.folder,
    env,
    detached: true,
    stdio: 'ignore',
  })
  const url = `http://127.0.0.1:${port}`
  const page = (): Promise<true | undefined> =>
    fetch(url).then(
      ({ ok }) => ok || undefined,
      () => undefined,
    )
  await waitUntil('Next answers', page, { limitMs: 120_000, everyMs: 250 })
  return async () => {
    const response = await fetch(`${url}/api/hour`)
    const text = await response.text()
    return response.ok ? (JSON.parse(text) as unknown) : text
  }
}

test('in development, also after an edit', { timeout: 400_000 }, async () => {
  const answer = await started('dev')
  expect(await answer()).toEqual({ ...everything, edition: 1 })
  await project.write({ 'app/api/hour/route.js': route(2) })
  const edited = await waitUntil(
    'the edit is there',
    async () => {
      const seen = await answer()
      return (seen as { readonly edition?: number }).edition === 1 ? undefined : seen
    },
    { limitMs: 60_000, everyMs: 250 },
  )
  expect(edited).toEqual({ ...everything, applied: 0, edition: 2 })
})

test('built and started', { timeout: 600_000 }, async () => {
  const build = { NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' }
  await project.run('npx', ['next', 'build'], build)
  const answer = await started('start')
  expect(await answer()).toMatchObject({ ...everything, edition: expect.any(Number) })
})
