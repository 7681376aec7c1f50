import { createHoldfast } from 'holdfast'
import type { BookDeclaration } from 'holdfast/ledger'
import { type Call, type Command, done, Misuse, unconfirmed, yesFlag } from '../command.ts'
import { numberOf } from '../number-flag.ts'
import { assertBook, listFollowers, listKeys, showUsage, unfollow } from './ledger-reports.ts'
import { renderAccount, renderBooks } from '../render/reports.ts'
import { lookOf } from '../render/look.ts'

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
      about: 'The scope it was used with; the key unless told',
    },
    movements: { type: 'string', value: '<n>', about: 'How many movements; 20 unless told' },
    before: {
      type: 'string',
      value: '<cursor>',
      about: 'Movements before those of the page that printed it',
    },
    limit: { type: 'string', value: '<n>', about: 'keys: how many; 100 unless told' },
    after: { type: 'string', value: '<cursor>', about: 'keys: after the page that printed it' },
    from: { type: 'string', value: '<date>', about: 'usage: since when; 30 days unless told' },
    to: { type: 'string', value: '<date>', about: 'usage: until when; now unless told' },
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
    printPainted(report, `${renderAccount(report, look).join('\n')}\n`)
  })
  return done
}

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
    const { before, after } = await ledgerOf(driver, schema).redeclare(book, declaration, {
      dryRun: !isDone,
    })
    const words = [
      `It is declared as: ${before === undefined ? 'nothing yet' : wordsOf(before)}`,
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
