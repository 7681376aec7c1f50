/** The clients of the smoke test, each opened as its own documentation says. */

async function pg(url, max) {
  const [{ default: module }, { fromPg }] = await Promise.all([
    import('pg'),
    import('holdfast/drivers/pg'),
  ])
  const pool = new module.Pool({ connectionString: url, max })
  // An idle connection that is lost is an event; without a listener it ends the process.
  pool.on('error', () => undefined)
  return {
    root: pool,
    driver: fromPg(pool),
    run: async (tx, text, values = []) => (await tx.query(text, values)).rows,
    close: () => pool.end(),
  }
}

async function postgresJs(url, max) {
  const [{ default: postgres }, { fromPostgresJs }] = await Promise.all([
    import('postgres'),
    import('holdfast/drivers/postgres-js'),
  ])
  const sql = postgres(url, { max, onnotice: () => undefined })
  return {
    root: sql,
    driver: fromPostgresJs(sql),
    run: async (tx, text, values = []) => [...(await tx.unsafe(text, values))],
    close: () => sql.end({ timeout: 1 }),
  }
}

async function kysely(url, max) {
  const [{ default: module }, { CompiledQuery, Kysely, PostgresDialect }, { fromKysely }] =
    await Promise.all([import('pg'), import('kysely'), import('holdfast/drivers/kysely')])
  const pool = new module.Pool({ connectionString: url, max })
  pool.on('error', () => undefined)
  // Kysely does not listen to the connection of a transaction; see docs/drivers.md.
  pool.on('connect', (client) => client.on('error', () => undefined))
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
  return {
    root: db,
    driver: fromKysely(db),
    run: async (tx, text, values = []) =>
      (await tx.executeQuery(CompiledQuery.raw(text, values))).rows,
    close: () => db.destroy(),
  }
}

async function drizzle(url, max) {
  const [{ default: module }, { drizzle: open }, { sql }, { fromDrizzle }] = await Promise.all([
    import('pg'),
    import('drizzle-orm/node-postgres'),
    import('drizzle-orm'),
    import('holdfast/drivers/drizzle'),
  ])
  const pool = new module.Pool({ connectionString: url, max })
  pool.on('error', () => undefined)
  const db = open(pool)
  return {
    root: db,
    driver: fromDrizzle(db, sql),
    run: async (tx, text, values = []) => {
      const parts = text.split(/\$\d+/).map((part) => sql.raw(part))
      const chunks = parts.flatMap((part, at) =>
        at < values.length ? [part, sql`${values[at]}`] : [part],
      )
      return (await tx.execute(sql.join(chunks))).rows
    },
    close: () => pool.end(),
  }
}

let proxy
let users = 0

/** Neon's pool over a WebSocket of this machine. */
async function neon(url, max) {
  const [{ Pool, neonConfig }, { fromPg }, { webSocketProxy }] = await Promise.all([
    import('@neondatabase/serverless'),
    import('holdfast/drivers/pg'),
    import('./web-socket-proxy.mjs'),
  ])
  users += 1
  proxy ??= await webSocketProxy(url)
  Object.assign(neonConfig, {
    wsProxy: () => `127.0.0.1:${proxy.address().port}/`,
    useSecureWebSocket: false,
    pipelineConnect: false,
    pipelineTLS: false,
    webSocketConstructor: globalThis.WebSocket,
  })
  const pool = new Pool({ connectionString: url, max })
  pool.on('error', () => undefined)
  return {
    root: pool,
    driver: fromPg(pool),
    run: async (tx, text, values = []) => (await tx.query(text, values)).rows,
    close: async () => {
      await pool.end()
      users -= 1
      if (users > 0) return
      proxy.close()
      proxy = undefined
    },
  }
}

/** By the name that is given to the smoke test. */
export const clients = { pg, postgres: postgresJs, kysely, drizzle, neon }
