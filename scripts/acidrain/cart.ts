/** Five ways to take home what was added to the cart while it was paid. */
import { type Attack, inTransaction, once, rowOf } from './attack.ts'

const tables = (name: string): string =>
  `CREATE TABLE ${name}_cart (id int PRIMARY KEY, state text NOT NULL, total int NOT NULL);
   CREATE TABLE ${name}_line (id int GENERATED ALWAYS AS IDENTITY, cart int NOT NULL REFERENCES ${name}_cart, product int NOT NULL, price int NOT NULL, amount int NOT NULL);
   CREATE TABLE ${name}_order (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, cart int NOT NULL, paid int NOT NULL);
   CREATE TABLE ${name}_item (id int GENERATED ALWAYS AS IDENTITY, cart int NOT NULL, product int NOT NULL, amount int NOT NULL);
   INSERT INTO ${name}_cart VALUES (1, 'open', 10), (2, 'open', 0);
   INSERT INTO ${name}_line (cart, product, price, amount) VALUES (1, 1, 10, 1)`

const open = (name: string): string => `SELECT * FROM ${name}_cart WHERE id = $1 AND state = 'open'`
const sum = (name: string): string =>
  `SELECT coalesce(sum(price * amount), 0)::int AS total FROM ${name}_line WHERE cart = $1`
const copy = (name: string): string =>
  `INSERT INTO ${name}_item (cart, product, amount) SELECT cart, product, amount FROM ${name}_line WHERE cart = $1 ORDER BY id`
const pay = (name: string): string => `INSERT INTO ${name}_order (cart, paid) VALUES ($1, $2)`
const close = (name: string): string => `UPDATE ${name}_cart SET state = 'ordered' WHERE id = $1`
const add = (name: string): string =>
  `INSERT INTO ${name}_line (cart, product, price, amount) VALUES ($1, $2, $3, 1)`

export const cartAttacks: readonly Attack[] = [
  {
    kind: 'cart',
    does: 'sums up the cart for the payment, and reads it again for the order',
    tables: tables('c1'),
    calls: [
      once(
        'c1 add',
        async (pool, cart, product, price) => {
          await rowOf(pool, open('c1'), [cart])
          await pool.query(add('c1'), [cart, product, price])
          return { added: product }
        },
        1,
        2,
        20,
      ),
      once(
        'c1 checkout',
        async (pool, cart) => {
          await rowOf(pool, open('c1'), [cart])
          const { total } = await rowOf(pool, sum('c1'), [cart])
          await pool.query(pay('c1'), [cart, total])
          await pool.query(copy('c1'), [cart])
          await pool.query(close('c1'), [cart])
          return { paid: total }
        },
        1,
      ),
    ],
    pair: ['c1 add', 'c1 checkout'],
  },
  {
    kind: 'cart',
    does: 'the same in one transaction at the default level',
    tables: tables('c2'),
    calls: [
      once(
        'c2 add',
        (pool, cart, product, price) =>
          inTransaction(pool, 'BEGIN', async (tx) => {
            await rowOf(tx, open('c2'), [cart])
            await tx.query(add('c2'), [cart, product, price])
            return { added: product }
          }),
        1,
        2,
        20,
      ),
      once(
        'c2 checkout',
        (pool, cart) =>
          inTransaction(pool, 'BEGIN', async (tx) => {
            await rowOf(tx, open('c2'), [cart])
            const { total } = await rowOf(tx, sum('c2'), [cart])
            await tx.query(pay('c2'), [cart, total])
            await tx.query(copy('c2'), [cart])
            await tx.query(close('c2'), [cart])
            return { paid: total }
          }),
        1,
      ),
    ],
    pair: ['c2 add', 'c2 checkout'],
  },
  {
    kind: 'cart',
    does: 'keeps a total in the cart, which is paid; the lines are what is ordered',
    tables: tables('c3'),
    calls: [
      once(
        'c3 add',
        async (pool, cart, product, price) => {
          await rowOf(pool, open('c3'), [cart])
          await pool.query(add('c3'), [cart, product, price])
          const { total } = await rowOf(pool, sum('c3'), [cart])
          await pool.query('UPDATE c3_cart SET total = $2 WHERE id = $1', [cart, total])
          return { added: product }
        },
        1,
        2,
        20,
      ),
      once(
        'c3 checkout',
        async (pool, cart) => {
          const { total } = await rowOf(pool, open('c3'), [cart])
          await pool.query(pay('c3'), [cart, total])
          await pool.query(copy('c3'), [cart])
          await pool.query(close('c3'), [cart])
          return { paid: total }
        },
        1,
      ),
    ],
    pair: ['c3 add', 'c3 checkout'],
  },
  {
    kind: 'cart',
    does: 'pays in one request what is ordered by the next',
    tables: `${tables('c4')}; ALTER TABLE c4_cart ADD paid int`,
    calls: [
      once(
        'c4 add',
        async (pool, cart, product, price) => {
          await rowOf(pool, `${open('c4')} AND paid IS NULL`, [cart])
          await pool.query(add('c4'), [cart, product, price])
          return { added: product }
        },
        1,
        2,
        20,
      ),
      once(
        'c4 pay',
        async (pool, cart) => {
          await rowOf(pool, `${open('c4')} AND paid IS NULL`, [cart])
          const { total } = await rowOf(pool, sum('c4'), [cart])
          await pool.query('UPDATE c4_cart SET paid = $2 WHERE id = $1', [cart, total])
          return { paid: total }
        },
        1,
      ),
      once(
        'c4 complete',
        async (pool, cart) => {
          const { paid } = await rowOf(pool, `${open('c4')} AND paid IS NOT NULL`, [cart])
          await pool.query(pay('c4'), [cart, paid])
          await pool.query(copy('c4'), [cart])
          await pool.query(close('c4'), [cart])
          return { paid }
        },
        1,
      ),
    ],
    pair: ['c4 add', 'c4 pay'],
  },
  {
    kind: 'cart',
    does: 'another amount of a line is written while the order is made of it',
    tables: tables('c5'),
    calls: [
      once(
        'c5 change',
        async (pool, cart, product, amount) => {
          await rowOf(pool, open('c5'), [cart])
          const change = 'UPDATE c5_line SET amount = $3 WHERE cart = $1 AND product = $2'
          await pool.query(change, [cart, product, amount])
          return { amount }
        },
        1,
        1,
        9,
      ),
      once(
        'c5 checkout',
        async (pool, cart) => {
          await rowOf(pool, open('c5'), [cart])
          const lines = 'SELECT price, amount FROM c5_line WHERE cart = $1'
          const { rows } = await pool.query<{ price: number; amount: number }>(lines, [cart])
          const total = rows.reduce((all, { price, amount }) => all + price * amount, 0)
          await pool.query(pay('c5'), [cart, total])
          await pool.query(copy('c5'), [cart])
          await pool.query(close('c5'), [cart])
          return { paid: total }
        },
        1,
      ),
    ],
    pair: ['c5 change', 'c5 checkout'],
  },
]
