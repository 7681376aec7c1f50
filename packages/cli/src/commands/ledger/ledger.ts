import { createHoldfast } from 'holdfast'
import type { BookDeclaration } from 'holdfast/ledger'
import { type Call, type Command, yesFlag } from '../../command.ts'
import { numberOf } from '../../number-flag.ts'
import { assertBook, listFollowers, listKeys, showUsage, unfollow } from './ledger-reports.ts'
import { renderAccount, renderBooks } from '../../render/reports.ts'
import { lookOf } from '../../render/look.ts'
import { done, Misuse, unconfirmed } from '../../failure.ts'

const verbs = ['show', 'books', 'redeclare', 'keys', 'usage', 'followers', 'unfollow'] as const
type Verb = (typeof verbs)[number]

/** Flags that say what a book is, and what `BookDeclaration` calls them. */
const declaring = {
  as: 'as',
  per: 'per',
  'time-zone': 'timeZone',
  rolling: 'rolling',
  rate: 'rate',
  amounts: 'amounts',
} as const

export const ledger: Command = {
  name: 'ledger',
  about: 'Accounts, books, keys, usage, and who follows',
  needsDatabase: true,
  args: [
    {
      name: 'verb',
      words: verbs,
      about: 'What to show or do',
    },
    { name: 'book', about: 'Name of the book; of unfollow, of the follower', optional: true },
    { name: 'key', about: 'Key of the account, to show', optional: true },
  ],
  flags: {
    scope: {
      type: 'string',
      value: '<scope>',
      about: 'The scope it was used with; default: the key',
    },
    movements: { type: 'string', value: '<n>', about: 'How many movements; default: 20' },
    before: {
      type: 'string',
      value: '<cursor>',
      about: 'Movements before those of the page that printed it',
    },
    limit: { type: 'string', value: '<n>', about: 'keys: how many; default: 100' },
    after: { type: 'string', value: '<cursor>', about: 'keys: after the page that printed it' },
    from: { type: 'string', value: '<date>', about: 'usage: since when; default: 30 days ago' },
    to: { type: 'string', value: '<date>', about: 'usage: until when; default: now' },
    by: { type: 'string', value: '<list>', about: 'usage: key, scope, feature, with commas' },
    key: { type: 'string', value: '<key>', about: 'usage: of this key only' },
    as: { type: 'string', value: '<kind>', about: 'redeclare: quota, credits or stock' },
    per: {
      type: 'string',
      value: '<period>',
      about: 'redeclare: minute, hour … lifetime; usage: hour … month',
    },
    'time-zone': {
      type: 'string',
      value: '<zone>',
      about: 'redeclare, usage: of windows and periods',
    },
    rolling: { type: 'string', value: '<time>', about: "redeclare: over the last '1 h'" },
    rate: { type: 'string', value: '<time>', about: "redeclare: a rate, so much in '1 min'" },
    amounts: { type: 'string', value: '<kind>', about: 'redeclare: number or bigint' },
    new: { type: 'boolean', about: 'redeclare: also a book that nobody has used or declared yet' },
    yes: yesFlag,
  },
  async run(call) {
    const { verb, book, key } = call.args as { verb: Verb; book?: string; key?: string }
    if (verb === 'books') return await listBooks(call)
    if (verb === 'followers') return await withLedger(call, (of) => listFollowers(call, of))
    if (book === undefined) throw new Misuse(`<book> is needed to ${verb} it.`)
    if (verb === 'keys') return await withLedger(call, (of) => listKeys(call, of, book))
    if (verb === 'usage') return await withLedger(call, (of) => showUsage(call, of, book))
    if (verb === 'unfollow') return await withLedger(call, (of) => unfollow(call, of, book))
    if (verb === 'redeclare') return await redeclare(call, book)
    if (key === undefined) throw new Misuse('<key> is needed to show an account.')
    return await show(call, book, key)
  },
}

async function show(
  { flags, schema, around, observe, printPainted }: Call,
  book: string,
  key: string,
): Promise<number> {
  const { scope, before } = flags
  const movements = numberOf(flags['movements'], 'movements') ?? 20
  await observe(async (observer, driver) => {
    const report = await observer.account(
      { book, key, ...(typeof scope === 'string' ? { scope } : {}) },
      { movements, ...(typeof before === 'string' ? { before } : {}) },
    )
    if (report.accounts.length === 0) await assertBook(ledgerOf(driver, schema), book)
    const look = lookOf(around.terminal)
    const isElsewhere = report.accounts.length === 0 && scope === undefined
    const lines = [...renderAccount(report, look), ...(isElsewhere ? [elsewhere] : [])]
    printPainted(report, `${lines.join('\n')}\n`)
  })
  return done
}

/** An account is its book, its scope and its key; by default the scope is the key. */
const elsewhere =
  'If it was used in a scope, name it with --scope; `holdfast ledger keys <book>` shows scopes.'

async function listBooks({ around, database, schema, printPainted }: Call): Promise<number> {
  const books = await database((driver) => ledgerOf(driver, schema).books())
  printPainted({ books }, `${renderBooks(books, lookOf(around.terminal)).join('\n')}\n`)
  return done
}

async function redeclare(call: Call, book: string): Promise<number> {
  const { flags, schema, print } = call
  const given = Object.entries(declaring).flatMap(([flag, option]) =>
    flags[flag] === undefined ? [] : [[option, flags[flag]] as const],
  )
  const declaration = Object.fromEntries(given) as unknown as BookDeclaration
  if (declaration.as === undefined) throw new Misuse('--as is needed: quota, credits or stock.')
  return await call.database(async (driver) => {
    const isDone = flags['yes'] === true
    const of = ledgerOf(driver, schema)
    // What is wrong with the declaration is told first: nothing is written by a dry run.
    const dry = await of.redeclare(book, declaration, { dryRun: true })
    if (dry.before === undefined && flags['new'] !== true) {
      await assertBook(of, book, 'To declare one that nobody has used yet, add --new.')
    }
    const { before, after } = isDone ? await of.redeclare(book, declaration) : dry
    const words = [
      `${isDone ? 'It was' : 'It is'} declared as: ${before === undefined ? 'nothing yet' : wordsOf(before)}`,
      `${isDone ? 'It is now' : 'It would be'}: ${wordsOf(after)}`,
      'Processes that run go on as they are until they are started again; then they have to declare it so.',
      'What was counted in calendar windows stays in those windows.',
      ...(isDone ? [] : ['Nothing was changed: say --yes to do it.']),
      '',
    ]
    print({ book, before: before ?? null, after, done: isDone }, words.join('\n'))
    return isDone ? done : unconfirmed
  })
}

function wordsOf(declaration: BookDeclaration): string {
  const { as, ...options } = declaration
  return [as, ...Object.entries(options).map(([option, value]) => `${option} ${value}`)].join(', ')
}

async function withLedger(
  { database, schema }: Call,
  run: (ledger: ReturnType<typeof ledgerOf>) => Promise<number>,
): Promise<number> {
  return await database((driver) => run(ledgerOf(driver, schema)))
}

function ledgerOf(
  driver: Parameters<Parameters<Call['database']>[0]>[0],
  schema: string | undefined,
): ReturnType<typeof createHoldfast>['ledger'] {
  return createHoldfast(driver, schema === undefined ? {} : { ledger: { schema } }).ledger
}
