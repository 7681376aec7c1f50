/** Eight ways to spend a voucher more often than it is worth. */
import { type Attack, enough, inTransaction, once, Refused, rowOf } from './attack.ts'

const orders = (name: string): string =>
  `CREATE TABLE ${name}_order (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer int NOT NULL, discount int NOT NULL)`

export const voucherAttacks: readonly Attack[] = [
  {
    kind: 'voucher',
    does: 'reads how often it was used, and saves the whole row with one more',
    tables: `CREATE TABLE v1 (id int PRIMARY KEY, code text NOT NULL, used int NOT NULL, most int NOT NULL);
      INSERT INTO v1 VALUES (1, 'SPRING', 0, 3); ${orders('v1')}`,
    calls: [
      once(
        'v1 redeem',
        async (pool, voucher, customer) => {
          const found = await rowOf(pool, 'SELECT * FROM v1 WHERE id = $1', [voucher])
          const { used = 0, most = 0 } = found
          enough(most - used, 1)
          const order = 'INSERT INTO v1_order (customer, discount) VALUES ($1, 5)'
          await pool.query(order, [customer])
          const save = 'UPDATE v1 SET code = $2, used = $3, most = $4 WHERE id = $1'
          await pool.query(save, [voucher, found.code, used + 1, most])
          return { discount: 5 }
        },
        1,
        7,
      ),
    ],
    pair: ['v1 redeem', 'v1 redeem'],
  },
  {
    kind: 'voucher',
    does: 'adds one to the uses in a transaction at the default level, after the check',
    tables: `CREATE TABLE v2 (id int PRIMARY KEY, used int NOT NULL, usage_limit int);
      INSERT INTO v2 VALUES (1, 0, 3); ${orders('v2')}`,
    calls: [
      once(
        'v2 redeem',
        (pool, voucher, customer) =>
          inTransaction(pool, 'BEGIN', async (tx) => {
            const find =
              'SELECT id FROM v2 WHERE id = $1 AND (usage_limit IS NULL OR usage_limit > used)'
            await rowOf(tx, find, [voucher])
            await tx.query('INSERT INTO v2_order (customer, discount) VALUES ($1, 5)', [customer])
            await tx.query('UPDATE v2 SET used = used + 1 WHERE id = $1', [voucher])
            return { discount: 5 }
          }),
        1,
        7,
      ),
    ],
    pair: ['v2 redeem', 'v2 redeem'],
  },
  {
    kind: 'voucher',
    does: 'counts its uses in a second table, and adds one',
    tables: `CREATE TABLE v3 (id int PRIMARY KEY, most int NOT NULL);
      CREATE TABLE v3_use (id int GENERATED ALWAYS AS IDENTITY, voucher int NOT NULL REFERENCES v3, customer int NOT NULL);
      INSERT INTO v3 VALUES (1, 3)`,
    calls: [
      once(
        'v3 redeem',
        (pool, voucher, customer) =>
          inTransaction(pool, 'BEGIN', async (tx) => {
            const { most = 0 } = await rowOf(tx, 'SELECT most FROM v3 WHERE id = $1', [voucher])
            const count = 'SELECT count(*)::int AS uses FROM v3_use WHERE voucher = $1'
            enough(most - ((await rowOf(tx, count, [voucher])).uses ?? 0), 1)
            const use = 'INSERT INTO v3_use (voucher, customer) VALUES ($1, $2)'
            await tx.query(use, [voucher, customer])
            return { discount: 5 }
          }),
        1,
        7,
      ),
    ],
    pair: ['v3 redeem', 'v3 redeem'],
  },
  {
    kind: 'voucher',
    does: 'a gift certificate: its amount less what its history says, which is then one longer',
    tables: `CREATE TABLE v4 (id int PRIMARY KEY, amount int NOT NULL, status int NOT NULL);
      CREATE TABLE v4_history (id int GENERATED ALWAYS AS IDENTITY, voucher int NOT NULL, amount int NOT NULL);
      INSERT INTO v4 VALUES (1, 100, 1); ${orders('v4')}`,
    calls: [
      once(
        'v4 pay',
        async (pool, voucher, price, customer) => {
          const find = 'SELECT amount FROM v4 WHERE id = $1 AND status = 1'
          const { amount = 0 } = await rowOf(pool, find, [voucher])
          const sum =
            'SELECT coalesce(sum(amount), 0)::int AS spent FROM v4_history WHERE voucher = $1 GROUP BY voucher'
          const { rows } = await pool.query<{ spent: number }>(sum, [voucher])
          enough(amount - (rows[0]?.spent ?? 0), price)
          const order = 'INSERT INTO v4_order (customer, discount) VALUES ($1, $2)'
          await pool.query(order, [customer, price])
          const spend = 'INSERT INTO v4_history (voucher, amount) VALUES ($1, $2)'
          await pool.query(spend, [voucher, price])
          return { paid: price }
        },
        1,
        30,
        7,
      ),
    ],
    pair: ['v4 pay', 'v4 pay'],
  },
  {
    kind: 'voucher',
    does: 'keeps the uses in a table of attributes, in a row that the first use makes',
    tables: `CREATE TABLE v5_attribute (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, coupon int NOT NULL, name text NOT NULL, content text NOT NULL);
      INSERT INTO v5_attribute (coupon, name, content) VALUES (1, 'usage_limit', '3'); ${orders('v5')}`,
    calls: [
      once(
        'v5 redeem',
        async (pool, coupon, customer) => {
          const { rows } = await pool.query<{ name: string; content: string }>(
            'SELECT name, content FROM v5_attribute WHERE coupon = $1 ORDER BY id',
            [coupon],
          )
          const all = new Map(rows.map(({ name, content }) => [name, Number(content)]))
          const used = all.get('usage_count') ?? 0
          enough((all.get('usage_limit') ?? 0) - used, 1)
          await pool.query('INSERT INTO v5_order (customer, discount) VALUES ($1, 5)', [customer])
          const save = all.has('usage_count')
            ? `UPDATE v5_attribute SET content = $2 WHERE coupon = $1 AND name = 'usage_count'`
            : `INSERT INTO v5_attribute (coupon, name, content) VALUES ($1, 'usage_count', $2)`
          await pool.query(save, [coupon, String(used + 1)])
          return { discount: 5 }
        },
        1,
        7,
      ),
    ],
    pair: ['v5 redeem', 'v5 redeem'],
  },
  {
    kind: 'voucher',
    does: 'limits the uses of one customer: reads them, and inserts or updates the row',
    tables: `CREATE TABLE v6 (id int PRIMARY KEY, per_customer int NOT NULL);
      CREATE TABLE v6_customer (voucher int NOT NULL, customer int NOT NULL, used int NOT NULL);
      INSERT INTO v6 VALUES (1, 3); ${orders('v6')}`,
    calls: [
      once(
        'v6 redeem',
        (pool, voucher, customer) =>
          inTransaction(pool, 'BEGIN ISOLATION LEVEL READ COMMITTED', async (tx) => {
            const { per_customer: most = 0 } = await rowOf(tx, 'SELECT * FROM v6 WHERE id = $1', [
              voucher,
            ])
            const read = 'SELECT used FROM v6_customer WHERE voucher = $1 AND customer = $2'
            const { rows } = await tx.query<{ used: number }>(read, [voucher, customer])
            const used = rows[0]?.used ?? 0
            enough(most - used, 1)
            await tx.query('INSERT INTO v6_order (customer, discount) VALUES ($1, 5)', [customer])
            const save =
              rows.length === 0
                ? 'INSERT INTO v6_customer (voucher, customer, used) VALUES ($1, $2, $3)'
                : 'UPDATE v6_customer SET used = $3 WHERE voucher = $1 AND customer = $2'
            await tx.query(save, [voucher, customer, used + 1])
            return { discount: 5 }
          }),
        1,
        7,
      ),
    ],
    pair: ['v6 redeem', 'v6 redeem'],
  },
  {
    kind: 'voucher',
    does: 'checks it when it is put into the cart, and counts it down when the cart is ordered',
    tables: `CREATE TABLE v7 (id int PRIMARY KEY, quantity int NOT NULL);
      CREATE TABLE v7_cart (cart int PRIMARY KEY, voucher int NOT NULL REFERENCES v7, ordered boolean NOT NULL);
      INSERT INTO v7 VALUES (1, 3);
      INSERT INTO v7_cart SELECT each, 1, false FROM generate_series(1, 12) each`,
    calls: [
      once(
        'v7 order',
        async (pool, cart) => {
          const find =
            'SELECT v.id, v.quantity FROM v7_cart c JOIN v7 v ON v.id = c.voucher WHERE c.cart = $1 AND NOT c.ordered'
          const { id, quantity = 0 } = await rowOf(pool, find, [cart])
          enough(quantity, 1)
          await pool.query('UPDATE v7_cart SET ordered = true WHERE cart = $1', [cart])
          await pool.query('UPDATE v7 SET quantity = $2 WHERE id = $1', [id, quantity - 1])
          return { discount: 5 }
        },
        1,
      ),
    ],
    pair: ['v7 order', 'v7 order'],
  },
  {
    kind: 'voucher',
    does: 'is good once: reads whether it is taken, and writes who took it',
    tables: `CREATE TABLE v8 (code text PRIMARY KEY, taken_by int);
      INSERT INTO v8 VALUES ('ONE', NULL), ('TWO', NULL), ('THREE', NULL); ${orders('v8')}`,
    calls: [
      {
        name: 'v8 redeem',
        async run(pool, code, customer) {
          const { rows } = await pool.query<{ taken_by: number | null }>(
            'SELECT taken_by FROM v8 WHERE code = $1',
            [code],
          )
          if (rows[0]?.taken_by !== null) throw new Refused()
          await pool.query('INSERT INTO v8_order (customer, discount) VALUES ($1, 5)', [customer])
          await pool.query('UPDATE v8 SET taken_by = $2 WHERE code = $1', [code, customer])
          return { discount: 5 }
        },
        values: ['ONE', 7],
      },
    ],
    pair: ['v8 redeem', 'v8 redeem'],
  },
]
