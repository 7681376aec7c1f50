import { PrismaPg } from '@prisma/adapter-pg'
import type { ExploreOptions } from '../../packages/race/src/explore.ts'
import { type Prisma, PrismaClient } from './prisma/generated/client.ts'

/**
 * A checkout as it is written with Prisma: read the cart, read the stock, take it, write the order,
 * empty the cart, all in one interactive transaction.
 */

export const checkoutTables = `
  CREATE TABLE product (id int PRIMARY KEY, stock int NOT NULL, version int NOT NULL DEFAULT 1);
  CREATE TABLE cart_line (
    id serial PRIMARY KEY, customer text NOT NULL, product_id int NOT NULL, quantity int NOT NULL);
  CREATE TABLE customer_order (
    id serial PRIMARY KEY, customer text NOT NULL, product_id int NOT NULL, quantity int NOT NULL)`

export const checkoutSeed = `
  DELETE FROM product; DELETE FROM cart_line; DELETE FROM customer_order;
  INSERT INTO product VALUES (1, 3);
  INSERT INTO cart_line (customer, product_id, quantity) VALUES ('ann', 1, 2), ('bob', 1, 2)`

/** How the stock is taken. */
export type Taking =
  /** Only if there is enough, in one statement. */
  | 'conditional decrement'
  /** Only if the version is the one that was read; otherwise all of it again. */
  | 'compare and set'
  /** As it was read: wrong. */
  | 'read, then write'

/** A schedule may keep a transaction waiting for longer than Prisma's five seconds. */
export const patient = { transactionOptions: { maxWait: 60_000, timeout: 60_000 } } as const

export async function checkout(
  prisma: PrismaClient,
  customer: string,
  taking: Taking,
): Promise<string> {
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    const answer = await prisma.$transaction((tx) => once(tx, customer, taking))
    if (answer !== 'again') return answer
  }
  return 'given up'
}

async function once(
  tx: Prisma.TransactionClient,
  customer: string,
  taking: Taking,
): Promise<string> {
  const cart = await tx.cartLine.findFirstOrThrow({ where: { customer } })
  const { productId, quantity } = cart
  const product = await tx.product.findUniqueOrThrow({ where: { id: productId } })
  if (product.stock < quantity) return 'sold out'
  const { count } = await tx.product.updateMany({
    where: {
      id: productId,
      ...(taking === 'conditional decrement' && { stock: { gte: quantity } }),
      ...(taking === 'compare and set' && { version: product.version }),
    },
    data:
      taking === 'conditional decrement'
        ? { stock: { decrement: quantity } }
        : { stock: product.stock - quantity, version: { increment: 1 } },
  })
  if (count === 0) return taking === 'compare and set' ? 'again' : 'sold out'
  await tx.order.create({ data: { customer, productId, quantity } })
  await tx.cartLine.deleteMany({ where: { customer } })
  return 'ordered'
}

/** Two customers who want two each of the three that are left. */
export function checkoutOf(
  taking: Taking,
): Pick<ExploreOptions, 'flows' | 'seed' | 'name' | 'oracle'> {
  const flow = (customer: string): ExploreOptions['flows'][string] => {
    return async ({ pool }) => {
      const prisma = new PrismaClient({ adapter: new PrismaPg(pool), ...patient })
      return await checkout(prisma, customer, taking)
    }
  }
  return {
    name: taking,
    seed: ({ query }) => query(checkoutSeed),
    flows: { ann: flow('ann'), bob: flow('bob') },
  }
}
