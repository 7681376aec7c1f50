/** `database shop at localhost:5432`: neither user nor password, which nobody may read in a message. */
export function databaseText(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url)
  const name = decodeURIComponent(pathname.slice(1)) || 'of the name of the user'
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  return `database ${name} at ${host || 'localhost'}:${port || '5432'}`
}

/** The address of a database, or a refusal that tells what is wrong with it. It may hold a password, so it is not shown. */
export function databaseUrl(who: string, url: string | undefined): string {
  if (url === undefined || url === '')
    throw new Error(`${who} needs a database: its url is not given; is DATABASE_URL set?`)
  if (!isDatabaseUrl(url))
    throw new Error(
      `${who} needs the url of a database, such as postgres://user:password@localhost:5432/test; the one that was given does not have this form`,
    )
  return url
}

export function isDatabaseUrl(url: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(url) && URL.canParse(url)
}
