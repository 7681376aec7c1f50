import { type Action, type Body, flat, type Late, type OrmControl } from './bodies-model.ts'

/** The body as code for its client: to be read, and to be tried. */
export function printBody(body: Body): string {
  const { client } = body
  const lines: string[] = []
  const { open, run, root, nested, orm = noCall } = dialects[client]
  lines.push(`// ${client}, ${body.pooled ? 'through PgBouncer in transaction mode' : 'direct'}`)
  lines.push(open)
  if (body.late.some(({ when }) => when === 'outside')) lines.push('let kept')
  const call = openings[body.entry]
  if (body.twin) lines.push('// twice at the same time')
  lines.push(`${call[0]} {`)
  if (body.late.some(({ when }) => when === 'outside')) lines.push('  kept = tx')
  const write = (actions: readonly Action[], indent: string, tx: string): void => {
    for (const action of actions) {
      const one = (text: string): void => {
        if (action.by === 'other') lines.push(`${indent}// by another call of the client`)
        if (action.by === 'beneath') lines.push(`${indent}// on the client beneath`)
        const first = action.firstOnly === true ? 'if (attempt === 1) ' : ''
        const swallowed = action.swallow === true ? `${text}.catch(() => undefined)` : text
        lines.push(`${indent}${first}await ${swallowed}`)
      }
      switch (action.do) {
        case 'read':
          one(run(tx, 'SELECT id FROM written LIMIT 1'))
          break
        case 'insert':
          one(run(tx, insertText))
          break
        case 'savepoint':
          one(run(tx, `SAVEPOINT ${action.name}`))
          break
        case 'rollback to':
          one(run(tx, `ROLLBACK TO SAVEPOINT ${action.name}`))
          break
        case 'release':
          one(run(tx, `RELEASE SAVEPOINT ${action.name}`))
          break
        case 'nested':
          lines.push(`${indent}await ${nested(tx)} {`)
          write(action.actions, `${indent}  `, 'inner')
          if (action.fails) lines.push(`${indent}  throw new Error('nested')`)
          lines.push(`${indent}})${action.swallow === true ? '.catch(() => undefined)' : ''}`)
          break
        case 'control':
        case 'look-alike':
        case 'disguised':
          one(run(tx, 'SET LOCAL standard_conforming_strings = off'))
          one(run(tx, `SELECT 'a\\''; ${action.text} --'`))
          break
        case 'orm':
          one(orm(tx, action.what))
          break
        case 'helper':
          for (const text of ['BEGIN', insertText, action.ends]) one(run(tx, text))
          break
        case 'fail':
          one(run(tx, 'SELECT 1 / 0'))
          break
        case 'unawaited':
          if (action.what === 'nested')
            lines.push(`${indent}void ${openNested(tx)}.catch(() => undefined)`)
          else lines.push(`${indent}void ${run(tx, strays[action.what])}.catch(() => undefined)`)
          break
        case 'set':
          one(run(tx, action.text))
          break
        case 'spoof':
          one(run(tx, "SELECT set_config('holdfast.held', ',x<number of another key>,', true)"))
          break
        case 'kill':
          lines.push(
            `${indent}${action.wait ? 'await' : 'void'} observer.query('SELECT pg_terminate_backend($1)', [pidOfTx])`,
          )
          break
        case 'call':
          one(callTexts[action.what]?.(tx) ?? action.what)
          break
        case 'root':
          one(root(action.what === 'insert' ? insertText : 'SELECT id FROM written LIMIT 1'))
          break
        case 'throw':
          lines.push(`${indent}throw new Error('mine')`)
          break
      }
    }
  }
  write(body.actions, '  ', 'tx')
  for (const late of body.late) {
    const use = lateText(late, 'tx', run)
    if (late.when === 'microtask') lines.push(`  queueMicrotask(() => ${use})`)
    if (late.when === 'immediate') lines.push(`  setImmediate(() => ${use})`)
    if (late.when === 'inside') lines.push(`  void theCallIsOver.then(() => ${use})`)
  }
  lines.push(call[1])
  for (const late of body.late) {
    if (late.when === 'outside') lines.push(`await ${lateText(late, 'kept', run)}`)
  }
  return lines.join('\n')
}

/** What a body is made of, for counting. */
export function partsOf(body: Body): readonly string[] {
  const actions = flat(body.actions).map((action) => {
    if (action.do === 'control') return `control ${action.text.replaceAll('\n', ' ')}`
    if (action.do === 'disguised') return `disguised ${action.text}`
    if (action.do === 'orm') return `orm ${action.what}`
    if (action.do === 'unawaited') return `unawaited ${action.what}`
    if (action.do === 'set') return `set ${action.text}`
    if (action.do === 'call') return `call ${action.what}`
    if (action.do === 'root') return `root ${action.what}`
    if (action.do === 'kill') return action.wait ? 'kill' : 'kill, not waited for'
    if (action.do === 'helper') return `helper ${action.ends}`
    return action.do
  })
  const late = body.late.map(({ when, what }) => `late ${what}, ${when}`)
  return [...actions, ...late, ...(body.twin ? ['twin'] : [])]
}

const insertText = "INSERT INTO written (id) VALUES ('…')"

const openNested = (tx: string): string =>
  `savepoint(${tx}, async () => { await theCallerWasTold; throw new Error() })`

const strays = {
  insert: insertText,
  'slow insert': "INSERT INTO written (id) SELECT '…' FROM pg_sleep(0.02)",
  fail: 'SELECT 1 / 0',
  rollback: 'ROLLBACK',
  commit: 'COMMIT',
} as const

const openings: Readonly<Record<Body['entry'], readonly [string, string]>> = {
  guard: ["await hf.guard(lockKey('bodies', 1), async (tx, { attempt }) =>", '})'],
  'tx.run': ['await hf.tx.run(async (tx, { attempt }) =>', '})'],
  'rows.optimistic': ['await hf.rows.optimistic(async (tx, { attempt }) =>', '})'],
  withVersionCheck: [
    "await hf.rows.withVersionCheck('doc', id, { work: async () => undefined, write: async (tx) =>",
    '} })',
  ],
  once: ["await hf.once('key', async (tx) =>", '})'],
  transactionHandler: ['await work.run({ transactionHandler: async (tx) =>', '} })'],
  'transactional tick': [
    "await hf.schedule({ name, every: '7 days', guarantee: 'transactional', attempts: 1, handler: async (tx) =>",
    '} }).runNow()',
  ],
}

const callTexts: Readonly<Record<string, (tx: string) => string>> = {
  acquire: (tx) => `hf.locks.acquire(${tx}, other)`,
  tryAcquire: (tx) => `hf.locks.tryAcquire(${tx}, other)`,
  'acquire own': (tx) => `hf.locks.acquire(${tx}, lockKey('bodies', 1))`,
  assertHeld: (tx) => `hf.locks.assertHeld(${tx}, lockKey('bodies', 1))`,
  'assertHeld other': (tx) => `hf.locks.assertHeld(${tx}, other)`,
  'rows.lock': (tx) => `hf.rows.lock(${tx}, 'doc', [id])`,
  updateVersioned: (tx) =>
    `hf.rows.updateVersioned(${tx}, 'doc', id, { version: 1, set: { note } })`,
  once: (tx) => `hf.once(${tx}, 'inner', async (inner) => { …INSERT… })`,
  consume: (tx) => `quota.consume(${tx}, 'key', 1, { operationId })`,
  enqueue: (tx) => `work.enqueue(${tx}, { payload: {} })`,
}

interface Dialect {
  readonly open: string
  run(tx: string, text: string): string
  root(text: string): string
  nested(tx: string): string
  orm?(tx: string, what: OrmControl): string
}

/** The client has no call for it, and nothing was sent. */
const noCall = (): string => 'Promise.resolve()'

const quoted = (text: string): string => JSON.stringify(text)
const byHand = (tx: string): string => `savepoint(${tx}, async (inner) =>`

const typeOrmCalls: Readonly<Record<OrmControl, string>> = {
  begin: 'startTransaction',
  commit: 'commitTransaction',
  rollback: 'rollbackTransaction',
  release: 'release',
}

const rollback: NonNullable<Dialect['orm']> = (tx, what) =>
  what === 'rollback' ? `called(() => ${tx}.rollback())` : noCall()

const dialects: Readonly<Record<Body['client'], Dialect>> = {
  pg: {
    open: 'const hf = createHoldfast(fromPg(pool))',
    run: (tx, text) => `${tx}.query(${quoted(text)})`,
    root: (text) => `pool.query(${quoted(text)})`,
    nested: byHand,
    orm: (tx, what) => (what === 'release' ? `called(() => ${tx}.release())` : noCall()),
  },
  'postgres.js': {
    open: 'const hf = createHoldfast(fromPostgresJs(sql))',
    run: (tx, text) => `${tx}.unsafe(${quoted(text)})`,
    root: (text) => `sql.unsafe(${quoted(text)})`,
    nested: (tx) => `${tx}.savepoint(async (inner) =>`,
    orm: (tx, what) => (what === 'release' ? noCall() : `${tx}.file('${what}.sql')`),
  },
  prisma: {
    open: 'const hf = createHoldfast(fromPrisma(prisma))',
    run: (tx, text) =>
      `${tx}.${text.startsWith('SELECT') ? '$queryRawUnsafe' : '$executeRawUnsafe'}(${quoted(text)})`,
    root: (text) => `prisma.$executeRawUnsafe(${quoted(text)})`,
    nested: (tx) => `${tx}.$transaction(async (inner) =>`,
  },
  'drizzle-pg': {
    open: 'const hf = createHoldfast(fromDrizzle(drizzle(pool), sql))',
    run: (tx, text) => `${tx}.execute(sql.raw(${quoted(text)}))`,
    root: (text) => `db.execute(sql.raw(${quoted(text)}))`,
    nested: (tx) => `${tx}.transaction(async (inner) =>`,
    orm: rollback,
  },
  'drizzle-postgres.js': {
    open: 'const hf = createHoldfast(fromDrizzle(drizzle(postgres(url)), sql))',
    run: (tx, text) => `${tx}.execute(sql.raw(${quoted(text)}))`,
    root: (text) => `db.execute(sql.raw(${quoted(text)}))`,
    nested: (tx) => `${tx}.transaction(async (inner) =>`,
    orm: rollback,
  },
  kysely: {
    open: 'const hf = createHoldfast(fromKysely(db))',
    run: (tx, text) => `sql.raw(${quoted(text)}).execute(${tx})`,
    root: (text) => `sql.raw(${quoted(text)}).execute(db)`,
    nested: byHand,
  },
  typeorm: {
    open: 'const hf = createHoldfast(fromTypeOrm(dataSource))',
    run: (tx, text) => `${tx}.query(${quoted(text)})`,
    root: (text) => `dataSource.query(${quoted(text)})`,
    nested: (tx) => `${tx}.transaction(async (inner) =>`,
    orm: (tx, what) => `${tx}.queryRunner.${typeOrmCalls[what]}()`,
  },
}

function lateText(late: Late, tx: string, run: Dialect['run']): string {
  if (late.what === 'insert') return run(tx, insertText)
  if (late.what === 'insert beneath') return `beneath(${tx}).query(${quoted(insertText)})`
  if (late.what === 'nested insert')
    return `savepoint(${tx}, (inner) => ${run('inner', insertText)})`
  return callTexts[late.what]?.(tx) ?? late.what
}
