const login = 'Check user and password of the database URL.'
const name = 'Create the database, or correct its name in the database URL.'

/** By SQLSTATE, its class, or the code of the client or of a socket error. */
const nextSteps: Readonly<Record<string, string>> = {
  '28': login,
  '3D': name,
  ER_ACCESS_DENIED_ERROR: login,
  ER_DBACCESS_DENIED_ERROR: login,
  ER_BAD_DB_ERROR: name,
  EADDRINUSE: 'Something listens on this port already; pass another --port.',
  EACCES: 'The port is not for this user; pass another --port.',
  EADDRNOTAVAIL: 'This machine has no such address; pass another --host.',
}
const unreachable = 'Check host and port of the database URL, and that the server is running.'

/** Why the console could not start: a code and what to do. Never a message, which may hold an address. */
export function reasonOf(error: unknown): string {
  const { code, errors } = (error ?? {}) as {
    readonly code?: unknown
    readonly errors?: readonly unknown[]
  }
  // A refused connection to a name with several addresses has its reasons one level down.
  if (code === undefined && errors !== undefined && errors.length > 0) return reasonOf(errors[0])
  if (typeof code !== 'string' || !/^[A-Z0-9_]{1,40}$/.test(code)) return unreachable
  return `${code}. ${nextSteps[code] ?? nextSteps[code.slice(0, 2)] ?? unreachable}`
}
