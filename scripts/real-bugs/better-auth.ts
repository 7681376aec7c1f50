import { Pool } from 'pg'
import type { RealBug } from './real-bug.ts'

interface Auth {
  handler(request: Request): Promise<Response>
}

interface Column {
  primaryKey(): Column
}

type MakeColumn = (name: string, options?: { mode: 'number' }) => Column

interface PgCore {
  readonly text: MakeColumn
  readonly integer: MakeColumn
  readonly bigint: MakeColumn
  readonly boolean: MakeColumn
  readonly timestamp: MakeColumn
  pgTable(name: string, columns: Readonly<Record<string, Column>>): unknown
}

interface BetterAuth {
  betterAuth(options: object): Auth
}

interface DrizzleAdapter {
  drizzleAdapter(database: unknown, options: { provider: 'pg'; schema: object }): unknown
}

interface Drizzle {
  drizzle(pool: unknown): unknown
}

interface TwoFactor {
  twoFactor(options: object): unknown
}

/** The tables that Better Auth asks for, as its own command generates them: fields and their types. */
const tables: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  user: {
    id: 'text PRIMARY KEY',
    name: 'text',
    email: 'text UNIQUE',
    emailVerified: 'boolean',
    image: 'text',
    createdAt: 'timestamp',
    updatedAt: 'timestamp',
    twoFactorEnabled: 'boolean',
  },
  session: {
    id: 'text PRIMARY KEY',
    expiresAt: 'timestamp',
    token: 'text UNIQUE',
    createdAt: 'timestamp',
    updatedAt: 'timestamp',
    ipAddress: 'text',
    userAgent: 'text',
    userId: 'text REFERENCES "user"',
  },
  account: {
    id: 'text PRIMARY KEY',
    accountId: 'text',
    providerId: 'text',
    userId: 'text REFERENCES "user"',
    accessToken: 'text',
    refreshToken: 'text',
    idToken: 'text',
    accessTokenExpiresAt: 'timestamp',
    refreshTokenExpiresAt: 'timestamp',
    scope: 'text',
    password: 'text',
    createdAt: 'timestamp',
    updatedAt: 'timestamp',
  },
  verification: {
    id: 'text PRIMARY KEY',
    identifier: 'text',
    value: 'text',
    expiresAt: 'timestamp',
    createdAt: 'timestamp',
    updatedAt: 'timestamp',
  },
  twoFactor: {
    id: 'text PRIMARY KEY',
    secret: 'text',
    backupCodes: 'text',
    userId: 'text REFERENCES "user"',
    verified: 'boolean',
    failedVerificationCount: 'integer',
    lockedUntil: 'timestamp',
  },
  rateLimit: {
    id: 'text PRIMARY KEY',
    key: 'text UNIQUE',
    count: 'integer',
    lastRequest: 'bigint',
  },
}

function createTables(): string {
  return Object.entries(tables)
    .map(([table, columns]) => {
      const lines = Object.entries(columns).map(([column, type]) => `"${column}" ${type}`)
      return `CREATE TABLE "${table}" (${lines.join(', ')});`
    })
    .join('\n')
}

/** The same tables as Drizzle wants them described. */
function describeTables(core: PgCore): Record<string, unknown> {
  const schema: Record<string, unknown> = {}
  for (const [table, columns] of Object.entries(tables)) {
    const described: Record<string, Column> = {}
    for (const [name, type] of Object.entries(columns)) {
      const [word] = type.split(' ', 1)
      const column = core[word as Exclude<keyof PgCore, 'pgTable'>](name, { mode: 'number' })
      described[name] = type.endsWith('PRIMARY KEY') ? column.primaryKey() : column
    }
    schema[table] = core.pgTable(table, described)
  }
  return schema
}

const origin = 'http://localhost:3000'
const codes = ['first-code', 'other-code']

/** What each instance of a service makes when it starts; `options` are those of the scene. */
function createAuth(load: NodeJS.Require, pool: Pool, options: object): Auth {
  const { betterAuth } = load('better-auth') as BetterAuth
  const { drizzleAdapter } = load('better-auth/adapters/drizzle') as DrizzleAdapter
  const { drizzle } = load('drizzle-orm/node-postgres') as Drizzle
  const schema = describeTables(load('drizzle-orm/pg-core') as PgCore)
  return betterAuth({
    baseURL: origin,
    secret: 'only for this scene, where nothing is secret',
    telemetry: { enabled: false },
    database: drizzleAdapter(drizzle(pool), { provider: 'pg', schema }),
    ...options,
  })
}

/** A request as a browser sends it, from one address of those reserved for documentation. */
function ask(auth: Auth, path: string, cookie: string, body?: object): Promise<Response> {
  const headers = {
    origin,
    cookie,
    'content-type': 'application/json',
    'x-forwarded-for': '203.0.113.7',
  }
  const init =
    body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
  return auth.handler(new Request(`${origin}/api/auth${path}`, init))
}

/** The cookies of an answer, as the next request sends them back. */
function cookiesOf({ headers }: Response): string {
  return headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0])
    .join('; ')
}

/** Makes the tables, and with them what the scene starts from. */
async function withTables<T>(url: string, work: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = new Pool({ connectionString: url })
  try {
    await pool.query(createTables())
    return await work(pool)
  } finally {
    await pool.end()
  }
}

/** One of two is let through and the other one is not. */
function onlyOne(answers: readonly unknown[]): boolean {
  return (answers as { status: number }[]).filter(({ status }) => status === 200).length === 1
}

/** Three requests a minute, two of which have been made: of two more, one must be refused. */
const prepareRateLimit: RealBug['prepare'] = async (load, url) => {
  const rateLimit = {
    enabled: true,
    storage: 'database',
    customRules: { '/ok': { window: 60, max: 3 } },
  }
  const request = async (pool: Pool): Promise<{ status: number }> => {
    const { status } = await ask(createAuth(load, pool, { rateLimit }), '/ok', '')
    return { status }
  }
  // The first request makes the row, with the key that the library gives it.
  await withTables(url, request)
  return {
    seed: `UPDATE "rateLimit" SET count = 2, "lastRequest" = extract(epoch FROM now()) * 1000`,
    flow: ({ pool }) => request(pool),
    check: 'SELECT count = 3 AS holds FROM "rateLimit"',
    fit: onlyOne,
  }
}

/** A backup code of the second factor is good for one time: of two requests with it, one must be refused. */
const prepareBackupCode: RealBug['prepare'] = async (load, url) => {
  const { twoFactor } = load('better-auth/plugins/two-factor') as TwoFactor
  const backupCodeOptions = {
    customBackupCodesGenerate: () => codes,
    // The default encrypts them; so the report can be read.
    storeBackupCodes: 'plain',
  }
  const options = {
    rateLimit: { enabled: false },
    emailAndPassword: { enabled: true },
    plugins: [twoFactor({ skipVerificationOnEnable: true, backupCodeOptions })],
  }
  const cookie = await withTables(url, async (pool) => {
    const auth = createAuth(load, pool, options)
    const account = { name: 'Ann', email: 'ann@example.com', password: 'made up for this' }
    const signedUp = await ask(auth, '/sign-up/email', '', account)
    const { password } = account
    return cookiesOf(await ask(auth, '/two-factor/enable', cookiesOf(signedUp), { password }))
  })
  return {
    seed: `UPDATE "twoFactor" SET "backupCodes" = '${JSON.stringify(codes)}'`,
    flow: async ({ pool }) => {
      const auth = createAuth(load, pool, options)
      const body = { code: codes[0] }
      const { status } = await ask(auth, '/two-factor/verify-backup-code', cookie, body)
      return { status }
    },
    check: `SELECT "backupCodes" = '["other-code"]' AS holds FROM "twoFactor"`,
    fit: onlyOne,
  }
}

const beside = ['drizzle-orm@0.45.4']

function released(release: string, known: RealBug['known']): RealBug[] {
  return [
    {
      release,
      beside,
      scene: 'two requests at a rate limit with one left',
      known,
      prepare: prepareRateLimit,
    },
    { release, beside, scene: 'one backup code used twice', known, prepare: prepareBackupCode },
  ]
}

export const betterAuthBugs: readonly RealBug[] = [
  ...released('better-auth@1.7.5', 'race'),
  ...released('better-auth@1.7.7', 'race-free'),
]
