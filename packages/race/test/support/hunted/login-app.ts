/** An application with accounts: whoever has logged in spends points, and two requests of one person race. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import pg from 'pg'

const { DATABASE_URL, SPENDING } = process.env

export const pool: pg.Pool = new pg.Pool({ connectionString: DATABASE_URL })

export const tables = `
  DROP TABLE IF EXISTS sessions, users;
  CREATE TABLE users (id int PRIMARY KEY, email text NOT NULL UNIQUE, password_hash text NOT NULL, reset jsonb,
    password_changed_at timestamptz NOT NULL DEFAULT '2026-01-02', points int NOT NULL);
  CREATE TABLE sessions (id text PRIMARY KEY, user_id int NOT NULL REFERENCES users);
  INSERT INTO users VALUES
    (1, 'ann.miller@corp.com', '$2b$10$WorthKeepingSecret1', '{"token": "reset-4711-x"}', DEFAULT, 30),
    (2, 'bob.smith@corp.com', '$2b$10$WorthKeepingSecret2', NULL, DEFAULT, 30)`

/** Everybody is known by a session; what it is worth is in its row. */
async function userOf(request: IncomingMessage, body: { token?: string }): Promise<number> {
  const token = request.headers.authorization?.slice('Bearer '.length) ?? body.token
  const { rows } = await pool.query('SELECT user_id FROM sessions WHERE id = $1', [token])
  return rows[0]?.user_id
}

async function spend(user: number, email: string, points: number): Promise<number> {
  const { rows } = await pool.query('SELECT points FROM users WHERE id = $1 AND email = $2', [
    user,
    email,
  ])
  if (!rows[0] || rows[0].points < points) return 409
  const more = SPENDING === 'fixed' ? ' AND points >= $2' : ''
  const update = `UPDATE users SET points = points - $2 WHERE id = $1${more}`
  return (await pool.query(update, [user, points])).rowCount === 1 ? 200 : 409
}

async function earn(user: number): Promise<number> {
  const { rows } = await pool.query('SELECT points FROM users WHERE id = $1', [user])
  await pool.query('UPDATE users SET points = $2 WHERE id = $1', [user, rows[0].points + 1])
  return 200
}

export async function app(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  const body = JSON.parse(text)
  const user = await userOf(request, body)
  const answer = (): Promise<number> =>
    request.url === '/spend' ? spend(user, body.email, body.points) : earn(user)
  response.writeHead(user === undefined ? 401 : await answer()).end()
}
