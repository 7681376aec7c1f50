/** The shop's HTTP service: what is asked for, and who answers it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Pool } from 'pg'
import type { PrismaClient } from '../prisma/generated/client.ts'
import { balanceRoutes } from './balances.ts'
import { cartRoutes } from './carts.ts'
import { claimRoutes } from './claims.ts'
import { withoutRaces } from './fixed.ts'
import { limitRoutes } from './limits.ts'
import { nestedRoutes } from './nested.ts'
import { chargeAt, orderRoutes } from './orders.ts'
import { onceRoutes } from './once.ts'
import { cartAndOrderRoutes } from './prisma/carts-and-orders.ts'
import { limitAndBalanceRoutes } from './prisma/limits-and-balances.ts'
import { onceAndClaimRoutes } from './prisma/once-and-claims.ts'
import { Refused } from './refused.ts'

/** Body in, answer out. */
export type Route = (body: never) => Promise<unknown>
export type Routes = Readonly<Record<string, Route>>

export interface ShopSettings {
  readonly pool: Pool
  /** With it, what Prisma has calls for is done by Prisma; the rest stays SQL. */
  readonly prisma?: PrismaClient | undefined
  /** Where cards are charged. */
  readonly payments?: string | undefined
  /** Without the races that are planted. */
  readonly fixed?: boolean
}

/** A listener for `http.createServer`. */
export function createShop({
  pool,
  prisma,
  payments,
  fixed = false,
}: ShopSettings): (request: IncomingMessage, response: ServerResponse) => void {
  const charge = chargeAt(payments)
  const planted: Routes = {
    ...limitRoutes(pool),
    ...balanceRoutes(pool),
    ...onceRoutes(pool),
    ...claimRoutes(pool),
    ...cartRoutes(pool),
    ...orderRoutes(pool, charge),
    ...nestedRoutes(pool),
    ...(prisma && {
      ...limitAndBalanceRoutes(prisma),
      ...onceAndClaimRoutes(prisma),
      ...cartAndOrderRoutes(prisma, charge),
    }),
  }
  const routes = fixed ? withoutRaces(planted, pool) : planted
  return (request, response) => {
    void answer(routes, request).then(({ status, body }) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    })
  }
}

async function answer(
  routes: Routes,
  request: IncomingMessage,
): Promise<{ readonly status: number; readonly body: unknown }> {
  try {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const route = routes[`${request.method} ${request.url}`]
    if (!route) throw new Refused(404, 'nothing here')
    return { status: 200, body: await route(JSON.parse(text || '{}') as never) }
  } catch (error) {
    const status = error instanceof Refused ? error.status : 500
    return { status, body: { error: (error as Error).message } }
  }
}
