/** A database that cannot be used: what happened, and what to do. Never its address, which may hold a password. */

const nextSteps: Readonly<Record<string, string>> = {
  '28P01': 'Check user and password of the database URL.',
  '28000': 'Check the user of the database URL, and that pg_hba.conf lets it in.',
  '3D000': 'Create the database, or correct its name in the database URL.',
  '42501': 'The role must be allowed to create a schema in this database.',
  '53300': 'The server has no connection left: close some, or raise max_connections.',
  ECONNREFUSED: 'Check host and port of the database URL, and that the server is running.',
  ENOTFOUND: 'Check the host of the database URL.',
  ETIMEDOUT: 'Check host and port of the database URL, and that a firewall lets you through.',
  ERR_INVALID_URL: 'Write the database URL as postgres://user:password@host:5432/database.',
}

/** The message of an error, with the next step behind it. */
export function reasonOf(error: unknown): string {
  const {
    code = '',
    message = '',
    errors,
  } = (error ?? {}) as {
    readonly code?: string
    readonly message?: string
    readonly errors?: readonly unknown[]
  }
  // A refused connection to a name with several addresses has its reasons one level down.
  if (message === '' && errors !== undefined && errors.length > 0) return reasonOf(errors[0])
  return [message || String(error), nextSteps[code]].filter((part) => part !== undefined).join('\n')
}

/** @throws Error with the cause and the next step */
export function refuse(cause: unknown): never {
  const reason = reasonOf(cause).replaceAll('\n', '. ')
  throw new Error(`The database cannot be reached: ${reason}`, { cause })
}
