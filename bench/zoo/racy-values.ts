/** Races that show only in a part of a value, beside what is drawn anew in every run, or in which values are the same. */
import { randomUUID } from 'node:crypto'
import type { Ask, Entry, Kit } from './model.ts'

const document = {
  tables: ['CREATE TABLE basket (id int PRIMARY KEY, doc text NOT NULL)'],
  rows: [`INSERT INTO basket VALUES (1, '{"n":0,"items":[]}')`],
}

interface Basket {
  readonly n: number
  readonly items: readonly { readonly id: string; readonly sku: string }[]
}

/** Reads a document, changes it and writes it back. */
async function rewrite(kit: Kit, change: (before: Basket) => object): Promise<unknown> {
  const [row] = await kit.ask('SELECT doc FROM basket WHERE id = 1')
  await kit.wait()
  const doc = JSON.stringify(change(JSON.parse(String(row?.['doc'])) as Basket))
  await kit.ask('UPDATE basket SET doc = $1 WHERE id = 1', doc)
  return kit.answer(200)
}

async function firstText(rows: ReturnType<Ask>, column: string): Promise<string> {
  return String((await rows)[0]?.[column])
}

export const racyValues: readonly Entry[] = [
  {
    name: 'count-beside-a-nonce',
    racy: true,
    why: 'both read the same count; the nonce beside it is another one in every run',
    ...document,
    flows: (kit) => rewrite(kit, ({ n }) => ({ n: n + 1, items: [], nonce: randomUUID() })),
  },
  {
    name: 'items-with-ids',
    racy: true,
    why: 'one item is lost, and every item has an id that is drawn',
    ...document,
    flows: (kit) =>
      rewrite(kit, ({ n, items }) => ({
        n,
        items: [...items, { id: randomUUID(), sku: kit.who }],
      })),
  },
  {
    name: 'number-behind-an-id',
    racy: true,
    why: 'both make number 5; before it stands an id that is drawn',
    tables: ['CREATE TABLE label (text text NOT NULL)'],
    rows: [`INSERT INTO label VALUES ('ORD-0-4')`],
    async flows(kit) {
      const last = await firstText(
        kit.ask(`SELECT max(split_part(text, '-', -1)::int) AS n FROM label`),
        'n',
      )
      await kit.wait()
      await kit.ask('INSERT INTO label VALUES ($1)', `ORD-${randomUUID()}-${Number(last) + 1}`)
      return kit.answer(201)
    },
  },
  {
    name: 'thirty-days-lost',
    racy: true,
    why: 'both add 30 days to the same moment, which the seed takes from the clock',
    tables: ['CREATE TABLE plan (id int PRIMARY KEY, until timestamptz NOT NULL)'],
    rows: [`INSERT INTO plan VALUES (1, now() + interval '14 days')`],
    async flows(kit) {
      const until = await firstText(
        kit.ask('SELECT until::text AS until FROM plan WHERE id = 1'),
        'until',
      )
      await kit.wait()
      await kit.ask(
        `UPDATE plan SET until = $1::text::timestamptz + interval '30 days' WHERE id = 1`,
        until,
      )
      return kit.answer(200)
    },
  },
  {
    name: 'two-ids-for-one',
    racy: true,
    why: 'each answers its own id, and only one of them is in the table',
    tables: ['CREATE TABLE customer (email text PRIMARY KEY, code text)'],
    rows: [`INSERT INTO customer VALUES ('x', NULL)`],
    async flows(kit) {
      const [row] = await kit.ask(`SELECT code FROM customer WHERE email = 'x'`)
      const known = row?.['code']
      if (typeof known === 'string') return { status: 200, code: known }
      await kit.wait()
      const code = randomUUID()
      await kit.ask(`UPDATE customer SET code = $1 WHERE email = 'x'`, code)
      return { status: 200, code }
    },
  },
  {
    name: 'a-number-before-a-token',
    racy: true,
    why: 'both count the same invoices, and write the same number before another token',
    tables: ['CREATE TABLE invoice (no text PRIMARY KEY)'],
    rows: [],
    async flows(kit) {
      const [row] = await kit.ask('SELECT count(*)::int AS n FROM invoice')
      await kit.wait()
      const token = randomUUID().replaceAll('-', '')
      await kit.ask('INSERT INTO invoice VALUES ($1)', `INV-${Number(row?.['n']) + 1}-${token}`)
      return kit.answer(200)
    },
  },
]
