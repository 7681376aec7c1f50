/** The address of a database, or a refusal that tells what is wrong with it. It may hold a password, so it is not shown. */
export function databaseUrl(who: string, url: string | undefined): string {
  if (url === undefined || url === '')
    throw new Error(`${who} needs a database: its url is not given; is DATABASE_URL set?`)
  if (!/^postgres(?:ql)?:\/\//.test(url) || !URL.canParse(url))
    throw new Error(
      `${who} needs the url of a database, such as postgres://user:password@localhost:5432/test; the one that was given does not have this form`,
    )
  return url
}
