import type { Ledger, UsageBy, UsageOptions } from 'holdfast/ledger'
import type { Call } from '../../command.ts'
import { nearest } from '../../nearest.ts'
import { numberOf } from '../../number-flag.ts'
import { lookOf } from '../../render/look.ts'
import { cleanText } from '../../terminal/clean-text.ts'
import { renderFollowers, renderKeys, renderUsage } from '../../render/ledger-reports.ts'
import { done, Misuse, notFound, unconfirmed } from '../../failure.ts'

type Books = Ledger<unknown>

const unused = 'No key of this book was used yet.'

/** A name that was mistyped must not look like a book that nobody has used yet. @throws Failed */
export async function assertBook(
  ledger: Pick<Books, 'books' | 'keys'>,
  book: string,
  otherwise = '',
): Promise<void> {
  const books = await ledger.books()
  if (books.some((each) => each.book === book)) return
  // Books of `ledger.apply` are used without being declared.
  if ((await ledger.keys(book, { limit: 1, amounts: 'bigint' })).keys.length > 0) return
  const meant = nearest(
    book,
    books.map((each) => each.book),
  )
  const asked = meant === undefined ? '' : ` Did you mean ${meant}?`
  throw notFound(
    `There is no book of this name.${asked}`,
    `Run \`holdfast ledger books\`, which shows their names.${otherwise && ` ${otherwise}`}`,
  )
}

export async function listKeys(call: Call, ledger: Books, book: string): Promise<number> {
  const { flags, around, printPainted } = call
  const limit = numberOf(flags['limit'], 'limit') ?? 100
  const { after } = flags
  const page = await ledger.keys(book, {
    limit,
    amounts: 'bigint',
    ...(typeof after === 'string' ? { after } : {}),
  })
  if (page.keys.length === 0) await assertBook(ledger, book)
  const lines =
    page.keys.length === 0
      ? [after === undefined ? unused : 'No more keys.']
      : renderKeys(page.keys, lookOf(around.terminal))
  if (page.next !== undefined) lines.push('', `More: --after ${quoted(cleanText(page.next))}`)
  printPainted(withTexts(page), `${lines.join('\n')}\n`)
  return done
}

export async function showUsage(call: Call, ledger: Books, book: string): Promise<number> {
  const { flags, around, printPainted } = call
  const by = typeof flags['by'] === 'string' ? flags['by'].split(',') : []
  const { key, scope, per } = flags
  const timeZone = flags['time-zone']
  const to = momentOf(flags['to'], 'to') ?? new Date()
  const from = momentOf(flags['from'], 'from') ?? new Date(to.getTime() - 30 * 86_400_000)
  if (from >= to) throw new Misuse('--from must be before --to, whose default is now.')
  const usage = await ledger.usage(book, {
    from,
    to,
    by: by as UsageBy[],
    amounts: 'bigint',
    ...(typeof per === 'string' ? { per: per as NonNullable<UsageOptions['per']> } : {}),
    ...(typeof timeZone === 'string' ? { timeZone } : {}),
    ...(typeof key === 'string' ? { key } : {}),
    ...(typeof scope === 'string' ? { scope } : {}),
  })
  if (usage.rows.length === 0) await assertBook(ledger, book)
  const lines = renderUsage(usage.rows, { by, per }, lookOf(around.terminal))
  if (!usage.complete)
    lines.push(
      '',
      'Something of this time may have been dropped or forgotten: the sums may be too low.',
    )
  printPainted(withTexts(usage), `${lines.join('\n')}\n`)
  return done
}

export async function listFollowers(call: Call, ledger: Books): Promise<number> {
  const followers = await ledger.followers()
  const lines = renderFollowers(followers, lookOf(call.around.terminal))
  call.printPainted({ followers }, `${lines.join('\n')}\n`)
  return done
}

export async function unfollow(call: Call, ledger: Books, name: string): Promise<number> {
  const followers = await ledger.followers()
  const isKnown = followers.some((one) => one.name === name)
  const isDone = call.flags['yes'] === true && isKnown && (await ledger.unfollow(name))
  if (!isKnown) {
    throw notFound(
      'Nobody follows under this name.',
      'Run `holdfast ledger followers`, which shows their names.',
    )
  }
  const words = isDone
    ? 'Forgotten. Movements it has not read may be dropped now.'
    : 'It would be forgotten, and movements it has not read might be dropped.\nNothing was changed: say --yes to do it.'
  call.print({ name, known: isKnown, done: isDone }, `${words}\n`)
  return isDone ? done : unconfirmed
}

function momentOf(value: unknown, flag: string): Date | undefined {
  if (typeof value !== 'string') return undefined
  const moment = new Date(value)
  if (Number.isFinite(moment.getTime())) return moment
  throw new Misuse(`--${flag} must be a date like 2026-11-01 or 2026-11-01T12:00:00Z.`)
}

/** As a shell takes it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** JSON has no bigint. */
function withTexts(value: object): object {
  return JSON.parse(
    JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part)),
  ) as object
}
