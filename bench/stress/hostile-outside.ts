import { tmpdir } from 'node:os'
import type { PoolClient } from 'pg'
import { commands } from '../../packages/cli/src/commands/index.ts'
import { run } from '../../packages/cli/src/run.ts'
import { plain } from '../../packages/cli/src/terminal/paint.ts'
import type { HoldfastConsole } from '../../packages/console/src/index.ts'
import { apiRoutes } from '../../packages/console/src/server/api-routes.ts'
import { isHoldfastError } from '../../packages/holdfast/src/core/errors.ts'
import type { Holdfast } from '../../packages/holdfast/src/index.ts'
import { idempotentFetch } from '../../packages/holdfast/src/entries/once.ts'
import type { Random } from '../harness/random.ts'
import type { Made } from './hostile-calls.ts'
import { hostileText } from './hostile-words.ts'

/** Those that go on for ever, or make schemas, servers and files. */
const notHere = new Set([
  'top',
  'console',
  'migrate',
  'shards',
  'audit',
  'maintain',
  'doctor',
  'init',
  'skill',
])
const tried = commands.filter(({ name }) => !notHere.has(name))
/** They print SQL for machines, as it is. */
const machine = new Set(['plan', 'grants'])
/** Which would look somewhere else, or wait for more. */
const leftOut = new Set(['url', 'config', 'watch', 'help', 'every', 'console'])

// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/

/** A command line made of hostile words. */
export async function hostileCommand(random: Random, url: string): Promise<Made> {
  const [command] = random.sample(tried, 1)
  if (command === undefined) throw new Error('there are no commands')
  const [sort, word] = hostileText(random)
  const typed: string[] = [command.name]
  for (const { words } of command.args ?? []) {
    typed.push(words === undefined ? word : (random.sample(words, 1)[0] ?? word))
  }
  for (const [name, { type }] of Object.entries(command.flags ?? {})) {
    if (leftOut.has(name) || random.integer(0, 3) > 0) continue
    typed.push(`--${name}`)
    if (type === 'string') typed.push(word)
  }
  const asJson = random.integer(0, 1) === 0
  if (asJson) typed.push('--json')
  let [out, err] = ['', '']
  const around = {
    environment: { DATABASE_URL: url },
    folder: tmpdir(),
    stopSignal: () => AbortSignal.timeout(10_000),
    onSignals: () => () => undefined,
    out: (text: string) => (out += text),
    err: (text: string) => (err += text),
    terminal: {
      isTerminal: false,
      isTold: false,
      paint: plain,
      size: () => ({ columns: 80, rows: 40 }),
    },
  }
  const path = `holdfast ${command.name}`
  // What a process is given as an argument has no NUL in it.
  const line = typed.map((each) => each.replaceAll('\0', '').slice(0, 100_000))
  const code = await run(line, around)
  const said = machine.has(command.name) ? err : `${out}${err}`
  const wrong =
    code < 0 || code > 3
      ? `exits with ${code}`
      : !asJson && control.test(said)
        ? `prints control characters: ${JSON.stringify(said.slice(0, 300))}`
        : asJson && !isJson(out) && !isJson(err)
          ? `prints no JSON: ${JSON.stringify(out.slice(0, 200))}`
          : undefined
  return { path, sort, wrong: wrong === undefined ? undefined : `${path} ${wrong}` }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text.trim() === '' ? 'x' : (text.trim().split('\n').at(-1) ?? ''))
    return true
  } catch {
    return false
  }
}

const parameters = [
  'book',
  'key',
  'scope',
  'queue',
  'name',
  'pid',
  'after',
  'limit',
  'from',
  'to',
  'per',
  'by',
  'database',
  'id',
  'schedule',
]

/** A request of somebody who has a token, or none. */
export async function hostileRequest(
  random: Random,
  console: HoldfastConsole,
  token: string,
): Promise<Made> {
  const routes = apiRoutes.filter(({ path }) => path !== 'api/events')
  const [route] = random.sample(routes, 1)
  if (route === undefined) throw new Error('there are no routes')
  const [sort, text] = hostileText(random)
  const word = text.toWellFormed().slice(0, 3_000)
  const chosen = random.sample(parameters, random.integer(0, 3))
  const address = route.path.replace('<pid>', encodeURIComponent(word))
  const query = chosen.map((name) => `${name}=${encodeURIComponent(word)}`).join('&')
  const path = `${route.method} ${route.path}`
  const headers: Record<string, string> = {
    host: 'localhost',
    origin: 'http://localhost',
    'content-type': 'application/json',
    ...(random.integer(0, 9) === 0 ? {} : { authorization: `Bearer ${token}` }),
  }
  const body = JSON.stringify(Object.fromEntries(parameters.map((name) => [name, word])))
  const response = await console.fetch(
    new Request(`http://localhost/${address}?${query}`, {
      method: route.method,
      headers,
      ...(route.method === 'POST' ? { body } : {}),
    }),
  )
  const said = await response.text()
  const isData = response.headers.get('content-type')?.includes('json') === true
  const wrong =
    response.status === 500 || (isData && !isJson(said)) || /\bat .*\.ts:\d+/.test(said)
      ? `${path} answered ${response.status}: ${said.slice(0, 200)}`
      : undefined
  return { path, sort, wrong }
}

/** `Idempotency-Key` with hostile keys, scopes and bodies: everybody gets the answer to their own request. */
export async function hostileIdempotency(
  random: Random,
  { once }: Pick<Holdfast<PoolClient>, 'once'>,
): Promise<Made> {
  const [sort, word] = hostileText(random)
  const [, scope] = hostileText(random)
  // A body that is text is sent as UTF-8, which has no halves of characters.
  const id = JSON.stringify([scope, word.toWellFormed()])
  const path = 'idempotentFetch'
  const answer = idempotentFetch(once, () => Promise.resolve({ status: 200, body: { id } }), {
    scope: () => scope,
  })
  const key = word
    .replaceAll(/[^\u0020-\u007e]/g, '')
    .trim()
    .slice(0, 300)
  try {
    const response = await answer(
      new Request('http://localhost/pay', {
        method: 'POST',
        headers: { 'idempotency-key': key },
        body: word,
      }),
    )
    if ([400, 409, 422].includes(response.status)) return { path, sort, wrong: undefined }
    const said = (await response.json()) as { id: string }
    return {
      path,
      sort,
      wrong: said.id === id ? undefined : `${path} gave ${id} the answer of ${said.id}`,
    }
  } catch (error) {
    const wrong = isHoldfastError(error)
      ? undefined
      : `${path} threw ${String(error).slice(0, 200)}`
    return { path, sort, wrong }
  }
}
