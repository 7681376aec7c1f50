/** Nine ways to sell more than there is. */
import { type Attack, enough, inTransaction, once, rowOf } from './attack.ts'

const stock = (name: string): string =>
  `CREATE TABLE ${name} (id int PRIMARY KEY, title text NOT NULL, quantity int NOT NULL);
   CREATE TABLE ${name}_sold (id int GENERATED ALWAYS AS IDENTITY, product int NOT NULL, amount int NOT NULL);
   INSERT INTO ${name} VALUES (1, 'lamp', 4), (2, 'chair', 50)`

export const stockAttacks: readonly Attack[] = [
  {
    kind: 'stock',
    does: 'reads the product, checks it, and saves the whole row with the new quantity',
    tables: stock('s1'),
    calls: [
      once(
        's1 buy',
        async (pool, product, amount) => {
          const found = await rowOf(pool, 'SELECT * FROM s1 WHERE id = $1', [product])
          enough(found.quantity, amount)
          await pool.query('INSERT INTO s1_sold (product, amount) VALUES ($1, $2)', [
            product,
            amount,
          ])
          const left = (found.quantity ?? 0) - amount
          const save = 'UPDATE s1 SET title = $2, quantity = $3 WHERE id = $1'
          await pool.query(save, [product, found.title, left])
          return { sold: amount }
        },
        1,
        1,
      ),
    ],
    pair: ['s1 buy', 's1 buy'],
  },
  {
    kind: 'stock',
    does: 'checks the quantity, and takes it off in the database without a condition',
    tables: stock('s2'),
    calls: [
      once(
        's2 buy',
        async (pool, product, amount) => {
          const found = await rowOf(pool, 'SELECT quantity FROM s2 WHERE id = $1', [product])
          enough(found.quantity, amount)
          await pool.query('INSERT INTO s2_sold (product, amount) VALUES ($1, $2)', [
            product,
            amount,
          ])
          const take = 'UPDATE s2 SET quantity = quantity - $2 WHERE id = $1'
          await pool.query(take, [product, amount])
          return { sold: amount }
        },
        1,
        1,
      ),
    ],
    pair: ['s2 buy', 's2 buy'],
  },
  {
    kind: 'stock',
    does: 'the same in one transaction at the default level',
    tables: `${stock('s3')}; ALTER TABLE s3 ADD allocated int NOT NULL DEFAULT 0`,
    calls: [
      once(
        's3 buy',
        (pool, product, amount) =>
          inTransaction(pool, 'BEGIN', async (tx) => {
            const read = 'SELECT quantity - allocated AS free FROM s3 WHERE id = $1'
            enough((await rowOf(tx, read, [product])).free, amount)
            await tx.query('INSERT INTO s3_sold (product, amount) VALUES ($1, $2)', [
              product,
              amount,
            ])
            const take = 'UPDATE s3 SET allocated = allocated + $2 WHERE id = $1'
            await tx.query(take, [product, amount])
            return { sold: amount }
          }),
        1,
        1,
      ),
    ],
    pair: ['s3 buy', 's3 buy'],
  },
  {
    kind: 'stock',
    does: 'saves an object that an ORM has read earlier in the same transaction',
    tables: stock('s4'),
    calls: [
      once(
        's4 buy',
        (pool, product, amount) =>
          inTransaction(pool, 'BEGIN', async (tx) => {
            const found = await rowOf(tx, 'SELECT * FROM s4 WHERE id = $1', [product])
            enough(found.quantity, amount)
            await tx.query('INSERT INTO s4_sold (product, amount) VALUES ($1, $2)', [
              product,
              amount,
            ])
            const save = 'UPDATE s4 SET title = $2, quantity = $3 WHERE id = $1'
            await tx.query(save, [product, found.title, (found.quantity ?? 0) - amount])
            return { sold: amount }
          }),
        1,
        1,
      ),
    ],
    pair: ['s4 buy', 's4 buy'],
  },
  {
    kind: 'stock',
    does: 'locks the row with FOR UPDATE, after it was checked without',
    tables: stock('s5'),
    calls: [
      once(
        's5 buy',
        async (pool, product, amount) => {
          const found = await rowOf(pool, 'SELECT quantity FROM s5 WHERE id = $1', [product])
          enough(found.quantity, amount)
          return await inTransaction(pool, 'BEGIN', async (tx) => {
            await tx.query('SELECT id FROM s5 WHERE id IN ($1) FOR UPDATE', [product])
            await tx.query('INSERT INTO s5_sold (product, amount) VALUES ($1, $2)', [
              product,
              amount,
            ])
            const take =
              'UPDATE s5 SET quantity = CASE id WHEN $1 THEN quantity - $2 ELSE quantity END WHERE id IN ($1)'
            await tx.query(take, [product, amount])
            return { sold: amount }
          })
        },
        1,
        1,
      ),
    ],
    pair: ['s5 buy', 's5 buy'],
  },
  {
    kind: 'stock',
    does: 'sums up movements, and adds one',
    tables: `CREATE TABLE s6_product (id int PRIMARY KEY);
      CREATE TABLE s6_moved (id int GENERATED ALWAYS AS IDENTITY, product int NOT NULL REFERENCES s6_product, amount int NOT NULL);
      INSERT INTO s6_product VALUES (1), (2);
      INSERT INTO s6_moved (product, amount) VALUES (1, 5), (1, -1), (2, 50)`,
    calls: [
      once(
        's6 buy',
        (pool, product, amount) =>
          inTransaction(pool, 'BEGIN', async (tx) => {
            const sum =
              'SELECT coalesce(sum(amount), 0)::int AS there FROM s6_moved WHERE product = $1'
            enough((await rowOf(tx, sum, [product])).there, amount)
            const add = 'INSERT INTO s6_moved (product, amount) VALUES ($1, $2)'
            await tx.query(add, [product, -amount])
            return { sold: amount }
          }),
        1,
        1,
      ),
    ],
    pair: ['s6 buy', 's6 buy'],
  },
  {
    kind: 'stock',
    does: 'counts what is pending in a second table beside what is there',
    tables: `CREATE TABLE s7_variant (id int PRIMARY KEY, inventory int NOT NULL);
      CREATE TABLE s7_inventory (id int PRIMARY KEY, there int NOT NULL, pending int NOT NULL);
      CREATE TABLE s7_line (id int GENERATED ALWAYS AS IDENTITY, variant int NOT NULL, state text NOT NULL);
      INSERT INTO s7_inventory VALUES (1, 4, 0), (2, 50, 0);
      INSERT INTO s7_variant VALUES (1, 1), (2, 2)`,
    calls: [
      once(
        's7 buy',
        (pool, variant, amount) =>
          inTransaction(pool, 'BEGIN', async (tx) => {
            const { inventory } = await rowOf(
              tx,
              'SELECT inventory FROM s7_variant WHERE id = $1',
              [variant],
            )
            const read = 'SELECT there, pending FROM s7_inventory WHERE id = $1'
            const { there = 0, pending = 0 } = await rowOf(tx, read, [inventory])
            enough(there - pending, amount)
            await tx.query(`INSERT INTO s7_line (variant, state) VALUES ($1, 'paid')`, [variant])
            const more = 'UPDATE s7_inventory SET pending = ($2 + pending) WHERE id = $1'
            await tx.query(more, [inventory, amount])
            return { sold: amount }
          }),
        1,
        1,
      ),
    ],
    pair: ['s7 buy', 's7 buy'],
  },
  {
    kind: 'stock',
    does: 'keeps the quantity as text in a table of attributes',
    tables: `CREATE TABLE s8_attribute (id int PRIMARY KEY, product int NOT NULL, name text NOT NULL, content text NOT NULL);
      CREATE INDEX ON s8_attribute (product);
      CREATE TABLE s8_order (id int GENERATED ALWAYS AS IDENTITY, product int NOT NULL);
      INSERT INTO s8_attribute VALUES (1, 1, 'price', '3.14'), (2, 1, 'stock', '4'), (3, 2, 'stock', '50')`,
    calls: [
      once(
        's8 buy',
        async (pool, product, amount) => {
          const { rows } = await pool.query<{ name: string; content: string }>(
            'SELECT name, content FROM s8_attribute WHERE product IN ($1) ORDER BY id',
            [product],
          )
          const found = rows.find(({ name }) => name === 'stock')
          enough(found && Number(found.content), amount)
          await pool.query('INSERT INTO s8_order (product) VALUES ($1)', [product])
          const take = `UPDATE s8_attribute SET content = (content::int - $2::int)::text WHERE product = $1 AND name = 'stock'`
          await pool.query(take, [product, amount])
          return { sold: amount }
        },
        1,
        1,
      ),
    ],
    pair: ['s8 buy', 's8 buy'],
  },
  {
    kind: 'stock',
    does: 'locks the order, which is another row for each buyer, and checks the units of the product',
    tables: `CREATE TABLE s9_order (id int PRIMARY KEY, state text NOT NULL);
      CREATE TABLE s9_product (id int PRIMARY KEY, quantity int NOT NULL);
      CREATE TABLE s9_unit (id int GENERATED ALWAYS AS IDENTITY, product int NOT NULL, "order" int NOT NULL REFERENCES s9_order);
      INSERT INTO s9_order SELECT each, 'cart' FROM generate_series(1, 12) each;
      INSERT INTO s9_product VALUES (1, 4), (2, 50)`,
    calls: [
      once(
        's9 buy',
        (pool, order, product) =>
          inTransaction(pool, 'BEGIN', async (tx) => {
            const lock = `SELECT id FROM s9_order WHERE id = $1 AND state = 'cart' FOR UPDATE`
            await rowOf(tx, lock, [order])
            const count = 'SELECT count(*)::int AS sold FROM s9_unit WHERE product = $1'
            const { sold = 0 } = await rowOf(tx, count, [product])
            const { quantity = 0 } = await rowOf(
              tx,
              'SELECT quantity FROM s9_product WHERE id = $1',
              [product],
            )
            enough(quantity - sold, 1)
            await tx.query('INSERT INTO s9_unit (product, "order") VALUES ($1, $2)', [
              product,
              order,
            ])
            await tx.query(`UPDATE s9_order SET state = 'complete' WHERE id = $1`, [order])
            return { sold: 1 }
          }),
        1,
        1,
      ),
    ],
    pair: ['s9 buy', 's9 buy'],
  },
]
