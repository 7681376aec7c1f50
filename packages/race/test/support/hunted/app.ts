/** An application that the command is tried on: a coupon that races, unless it is told to be fixed, and a card that is safe, in a function if it is told so. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import pg from 'pg'

const {
  DATABASE_URL,
  OWN_URL = DATABASE_URL,
  COUPONS,
  CARDS,
  BANK_URL,
  CLOSED,
  ENDS_AT_ONCE,
} = process.env

// As many programs do, whatever is under way.
if (ENDS_AT_ONCE !== undefined) process.on('SIGTERM', () => process.exit(0))

export const pool: pg.Pool = new pg.Pool({ connectionString: OWN_URL })

async function redeem(code: unknown): Promise<number> {
  if (COUPONS === 'fixed') {
    return await change('UPDATE coupons SET uses = uses + 1 WHERE code = $1 AND uses < most', code)
  }
  const { rows } = await pool.query('SELECT uses, most FROM coupons WHERE code = $1', [code])
  if (!rows[0] || rows[0].uses >= rows[0].most) return 409
  // Of another machine; what it answers decides.
  if (BANK_URL !== undefined && (await (await fetch(BANK_URL)).text()) !== 'charged') return 502
  return await change('UPDATE coupons SET uses = uses + 1 WHERE code = $1', code)
}

async function change(text: string, code: unknown): Promise<number> {
  const { rowCount } = await pool.query(text, [code])
  return rowCount === 1 ? 200 : 409
}

async function useCard(code: unknown): Promise<number> {
  if (CARDS !== 'function') {
    return await change('UPDATE cards SET uses = uses + 1 WHERE code = $1 AND uses < most', code)
  }
  const { rows } = await pool.query('SELECT use_card($1) AS used', [code])
  return rows[0].used === true ? 200 : 409
}

export const calls = {
  'expire coupons': async (code: string): Promise<void> => {
    await pool.query('UPDATE coupons SET most = 0 WHERE code = $1', [code])
  },
}

export async function app(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  const { code } = JSON.parse(text)
  const isClosed = CLOSED !== undefined
  const status = isClosed ? 409 : await (request.url === '/coupons' ? redeem(code) : useCard(code))
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ code }))
}
