import { readFileSync } from 'node:fs'
import { Failed } from '../failure.ts'

const form = 'postgres://user:password@host:5432/database'
const written = (as: string): string =>
  `Write the database URL as ${as}, with special characters percent-encoded: @ is %40, / is %2F, ? is %3F, # is %23.`
const next = written(form)
const nextOfAny = written(`${form} or mysql://user:password@host:3306/database`)

const ofPostgres =
  'This command is for PostgreSQL alone; on MariaDB and MySQL there are cancel, console, doctor, locks, migrate, top and why.'

const ofSqlite =
  'There are no commands for SQLite: call migrate(driver) of holdfast/sqlite when the application starts.'

const sqliteForm = /^(?:sqlite3?|libsql|file):|^[^:]+\.(?:db3?|sqlite3?)$/i

/** Files that the client reads because the URL names them. */
const files = ['sslrootcert', 'sslcert', 'sslkey']

/**
 * The client takes any text for a URL: it reads `foo` as a database on the host `base`, connects with mysql:// to a
 * PostgreSQL server, and takes a part of a password for the host. `from` says where the text was found; the text itself
 * is not repeated, for it has a password.
 *
 * @throws Failed
 */
export function checkedUrl(url: string, from: string): string {
  return refusedIf(url, from, wrong(url) ?? missingFile(url))
}

const mysqlForm = /^(?:mysql|mariadb):\/\//i

/** Whether it leads to MariaDB or MySQL. */
export function isMysqlUrl(url: string): boolean {
  return mysqlForm.test(url)
}

/**
 * The same for a command that works on MariaDB and MySQL, too.
 *
 * @throws Failed
 */
export function checkedAnyUrl(url: string, from: string): string {
  if (isMysqlUrl(url)) return refusedIf(url, from, ambiguity(url) ?? unreadable(url))
  return refusedIf(url, from, wrong(url) ?? missingFile(url), nextOfAny)
}

/**
 * For a command that prints SQL of PostgreSQL and connects nowhere: a URL of another database says that it is not for here.
 *
 * @throws Failed
 */
export function assertForPostgres(url: string | undefined): void {
  if (url === undefined || !(isMysqlUrl(url) || sqliteForm.test(url))) return
  refusedIf(url, 'the database URL that is set', foreign(url))
}

/**
 * The same for a URL that a server reads, with libpq: there an `@` of the password begins the host, and files are those of
 * the server.
 *
 * @throws Failed
 */
export function checkedPeerUrl(url: string, from: string): string {
  const [authority = ''] = afterScheme(url).split(/[/?]/)
  const isTwice = authority.indexOf('@') !== authority.lastIndexOf('@')
  const isLoose = /%(?![a-f0-9]{2})/i.test(url)
  const strict = isTwice
    ? 'has an @ in its password, which is %40 in a URL'
    : isLoose
      ? 'has a % in it that stands for itself, which is %25 in a URL'
      : undefined
  return refusedIf(url, from, wrong(url) ?? strict)
}

/** What was set cannot be a URL of a database. */
export function invalidUrl(from: string, what: string, step: string = next): Failed {
  return new Failed({ code: 'DATABASE_URL_INVALID', message: `${from} ${what}.`, next: step })
}

function refusedIf(
  url: string,
  from: string,
  what: string | undefined,
  step: string = next,
): string {
  if (what === undefined) return url
  const other = what !== foreign(url) ? undefined : isMysqlUrl(url) ? ofPostgres : ofOthers(url)
  throw invalidUrl(from, what, other ?? step)
}

function ofOthers(url: string): string | undefined {
  return sqliteForm.test(url) ? ofSqlite : undefined
}

function wrong(url: string): string | undefined {
  return foreign(url) ?? ambiguity(url) ?? unreadable(url)
}

function foreign(url: string): string | undefined {
  const [, scheme] = /^([a-z][a-z0-9+.-]{0,30}):\/\//i.exec(url) ?? []
  if (/^postgres(?:ql)?$/i.test(scheme ?? '') || /^socket:/i.test(url)) return undefined
  if (url === '') return 'is empty'
  return scheme === undefined
    ? 'is no URL, it does not begin with postgres://'
    : `is not a URL of PostgreSQL, it begins with ${scheme.toLowerCase()}://`
}

function afterScheme(url: string): string {
  return url.replace(/^[a-z][a-z0-9+.-]*:(?:\/\/)?/i, '')
}

/** Where the password may end too early, what follows is taken for a host, a database or nothing at all. */
function ambiguity(url: string): string | undefined {
  if (url.includes('#')) return 'has a # in it, which is %23 in a URL'
  const rest = afterScheme(url)
  const end = rest.search(/[/?]/)
  return end !== -1 && rest.includes('@', end)
    ? 'has an @ after a / or ?: if they are in the password or in a value, they are %40, %2F and %3F in a URL'
    : undefined
}

/** As the client reads it, who takes an empty host for a socket. */
function parsed(url: string): URL | null {
  return URL.parse(url) ?? URL.parse(url.replace('@/', '@localhost/'))
}

function unreadable(url: string): string | undefined {
  const read = parsed(url)
  const port = read?.searchParams.get('port') ?? ''
  if (read === null || !/^\d{0,5}$/.test(port) || Number(port) > 65_535) {
    return 'cannot be read: its port is no number up to 65535, or a special character in it is not percent-encoded'
  }
  try {
    // The client encodes a % that stands for itself.
    if (/%(?![a-f0-9]{2})/i.test(url)) return undefined
    for (const part of [read.username, read.password, read.hostname, read.pathname]) {
      decodeURIComponent(part)
    }
    return undefined
  } catch {
    return 'has a % in it that begins no character of UTF-8: a % itself is %25 in a URL'
  }
}

function missingFile(url: string): string | undefined {
  const wanted = parsed(url)?.searchParams
  for (const name of files) {
    const file = wanted?.get(name)
    try {
      if (file) readFileSync(file)
    } catch (error) {
      return `names a file as ${name} that cannot be read (${(error as NodeJS.ErrnoException).code})`
    }
  }
  return undefined
}
