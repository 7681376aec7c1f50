/** The fix as a diff: of the statement as it stands in the code, which `git apply` takes; nothing where it is not found. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type Patch, patchOf } from '../../../src/report/fix/patch.ts'

const folder = mkdtempSync(join(tmpdir(), 'race-patch-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'seats.ts')

function patched(source: string, before: string, added: string, line: number): string | undefined {
  writeFileSync(file, source)
  const edit = { place: { file, line }, before, added, at: before.length }
  const patch: Patch | undefined = patchOf(
    [
      { joint: 'or', text: 'no change' },
      { joint: 'or', text: 'a change', edit },
    ],
    folder,
  )
  if (patch === undefined) return undefined
  expect(patch.text).toBe('a change')
  execFileSync('git', ['apply', '-p1'], { cwd: folder, input: patch.diff })
  return readFileSync(file, 'utf8')
}

const read = 'SELECT n FROM seats WHERE id = $1'
const code = (statement: string, end = '\n'): string =>
  `import pg from 'pg'\nconst pool = new pg.Pool()\n\nexport async function take(id: number) {\n  await pool.query(\n    ${statement},\n    [id],\n  )\n}${end}`

test.each([`'${read}'`, `"${read}"`, `\`${read}\``])('%s gets a lock', (statement) => {
  const after = patched(code(statement), read, ' FOR UPDATE', 5)
  expect(after).toBe(code(statement.slice(0, -1) + ' FOR UPDATE' + statement.at(-1)))
})

test('a file without a newline at its end, and a change in its last lines', () => {
  const after = patched(code(`'${read}'`, ''), read, ' FOR UPDATE', 5)
  expect(after).toBe(code(`'${read} FOR UPDATE'`, ''))
})

test('a statement of two lines', () => {
  const long = 'SELECT n\n  FROM seats WHERE id = $1'
  expect(patched(code(`\`${long}\``), long, ' FOR UPDATE', 5)).toBe(code(`\`${long} FOR UPDATE\``))
})

test('of two, the one beside the line; neither if both are', () => {
  const far = code(`'${read}'`) + '\n'.repeat(20) + code(`'${read}'`)
  expect(patched(far, read, ' FOR UPDATE', 34)?.indexOf('FOR UPDATE')).toBeGreaterThan(150)
  const near = `const a = '${read}'\nconst b = '${read}'\n`
  expect(patched(near, read, ' FOR UPDATE', 1)).toBeUndefined()
})

test('the query builder of Drizzle has a method for it', () => {
  const chain = `await tx\n    .select({ n: seats.n })\n    .from(seats)\n    .where(eq(seats.id, fn('(')))`
  const source = (end: string): string =>
    `import { eq } from 'drizzle-orm'\nexport async function take(id: number) {\n  const [row] = ${chain}${end}\n  return row\n}\n`
  const sent = 'select "n" from "seats" where "seats"."id" = $1'
  expect(patched(source(''), sent, ' FOR UPDATE', 3)).toBe(source(`.for('update')`))
  expect(patched(source(''), sent, ' FOR UPDATE SKIP LOCKED', 3)).toBe(
    source(`.for('update', { skipLocked: true })`),
  )
})

const insert = 'INSERT INTO letters (email) VALUES ($1)'
const conflict = ' ON CONFLICT (email) DO NOTHING'

test('an INSERT passes over what a constraint keeps out, and the words name the constraint', () => {
  writeFileSync(file, code(`'${insert}'`))
  const place = { file, line: 5 }
  const told = 'Run CREATE UNIQUE INDEX ON letters (email) first.'
  const edit = { place, before: insert, added: conflict, at: insert.length, told }
  const patch = patchOf([{ joint: 'or', text: 'Let a constraint say it.', edit }], folder)
  expect(patch?.text).toBe(`Let a constraint say it. ${told}`)
  execFileSync('git', ['apply', '-p1'], { cwd: folder, input: patch?.diff })
  expect(readFileSync(file, 'utf8')).toBe(code(`'${insert}${conflict}'`))
})

test('an INSERT of Drizzle has a method for it', () => {
  const source = (end: string): string =>
    `import { eq } from 'drizzle-orm'\nexport async function join(email: string) {\n  await db.insert(letters).values({ email })${end}\n}\n`
  const sent = 'insert into "letters" ("email") values ($1)'
  expect(patched(source(''), sent, conflict, 3)).toBe(source('.onConflictDoNothing()'))
})

describe('a transaction becomes a guard', () => {
  const database = `export const db = drizzle(pool)\nexport const hf: Holdfast<Tx> = createHoldfast(fromDrizzle(db, sql))\n`
  const source = (imports: string, opened: string, more = ''): string =>
    `${imports}\n\nexport async function keep(userId: number, bytes: number) {\n  await ${opened} {\n    const used = await sum(tx, userId)\n    if (used + bytes > 100) throw new Error('full')\n    await tx.insert(files).values({ userId, bytes })\n  })\n}\n${more}`
  const begun = 'db.transaction(async (tx) =>'
  const guarded = `hf.guard(lockKey('user', userId), async (tx) =>`

  function guardedOf(text: string, part = 'userId', line = 5): string | undefined {
    writeFileSync(file, text)
    writeFileSync(join(folder, 'database.ts'), database)
    const edit = { file, from: line, to: line + 2, name: 'user', part }
    const patch = patchOf([{ joint: 'or', text: 'a guard', edit }], folder)
    if (patch === undefined) return undefined
    execFileSync('git', ['apply', '-p1'], { cwd: folder, input: patch.diff })
    return readFileSync(file, 'utf8')
  }

  test('the client is needed for nothing else', () => {
    expect(guardedOf(source(`import { db } from './database.ts'`, begun))).toBe(
      source(`import { lockKey } from 'holdfast'\nimport { hf } from './database.ts'`, guarded),
    )
  })

  test('the client is needed elsewhere, far below, and a key of all', () => {
    const more = `${'\n'.repeat(12)}export const all = () => db.select().from(files)\n`
    const before = `import { HoldfastError } from 'holdfast'\nimport { db } from './database.ts'`
    const after = `import { lockKey, HoldfastError } from 'holdfast'\nimport { hf, db } from './database.ts'`
    expect(guardedOf(source(before, begun, more), `'all'`, 6)).toBe(
      source(after, guarded.replace('userId', `'all'`), more),
    )
  })

  test.each([
    ['another variable', source(`import { db } from './database.ts'`, begun), 'ownerId'],
    ['a client without Holdfast beside it', source(`import { db } from './other.ts'`, begun)],
    [
      'a transaction with settings of its own',
      source(`import { db } from './database.ts'`, begun).replace('  })\n', '  }, serializable)\n'),
    ],
    ['no transaction', source(`import { db } from './database.ts'`, 'within(async (tx) =>')],
    [
      'a write behind it',
      source(`import { db } from './database.ts'`, begun).replace(
        '    await tx.insert',
        '  })\n  ;(async (tx) => {\n    await tx.insert',
      ),
      'userId',
      7,
    ],
  ])('the control: %s is not changed', (_, text, part?: string, line?: number) => {
    expect(guardedOf(text, part, line)).toBeUndefined()
  })
})

test.each([
  ['what is put together', code('`SELECT n FROM ${table} WHERE id = $1`')],
  ['a part of another statement', code(`'${read} AND n > 0'`)],
  ['another client', code('sql.find({ id })')],
])('the control: %s is not changed', (_, source) => {
  expect(patched(source, read, ' FOR UPDATE', 5)).toBeUndefined()
})

test('a file that is gone has no diff', () => {
  const edit = { place: { file: join(folder, 'gone.ts'), line: 1 }, before: read, added: '', at: 0 }
  expect(patchOf([{ joint: 'or', text: 'x', edit }])).toBeUndefined()
})
