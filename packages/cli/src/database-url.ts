import { Failed } from './command.ts'

const form = 'postgres://user:password@host:5432/database'

/**
 * The client takes any text for a URL: it reads `foo` as a database on the host `base`, and connects with mysql:// to a
 * PostgreSQL server. `from` says where the text was found; the text itself is not repeated, for it has a password.
 *
 * @throws Failed
 */
export function checkedUrl(url: string, from: string): string {
  const [, scheme] = /^([a-z][a-z0-9+.-]{0,30}):\/\//i.exec(url) ?? []
  const isPostgres = /^postgres(?:ql)?$/i.test(scheme ?? '')
  // What follows a # would be left out: the rest of a password, and the host.
  if ((isPostgres && !url.includes('#')) || /^socket:/i.test(url)) return url
  const what = isPostgres
    ? 'has a # in it, which is %23 in a URL'
    : url === ''
      ? 'is empty'
      : scheme === undefined
        ? 'is no URL, it does not begin with postgres://'
        : `is not a URL of PostgreSQL, it begins with ${scheme.toLowerCase()}://`
  throw new Failed({
    code: 'DATABASE_URL_INVALID',
    message: `${from} ${what}.`,
    next: `Write the database URL as ${form}, with special characters percent-encoded.`,
  })
}
