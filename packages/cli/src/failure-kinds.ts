/** An error that is not of the library, as far as it is known what to do about it. */
export interface Known {
  readonly code: string
  readonly message: string
  /** What the operating system was asked to do, by Node's name for it. */
  readonly call: string | undefined
}

/** A refused connection to a name with several addresses has its reasons one level down. */
export function plain(error: unknown): Known {
  const { code, message, errors, syscall } = (error ?? {}) as Record<string, unknown>
  if (message === '' && Array.isArray(errors) && errors.length > 0) return plain(errors[0])
  return {
    code: typeof code === 'string' ? code : 'FAILED',
    message: String(message ?? error),
    call: typeof syscall === 'string' ? syscall : undefined,
  }
}

/** Codes of sockets have no digit: EPIPE is none. */
export function isState(code: string): boolean {
  return /^(?=.*[0-9])[0-9A-Z]{5}$/.test(code)
}

const otherwise =
  'If it happens again, run `holdfast doctor`, which looks at the connection, the server, the role and the schema.'
const unexpected =
  'Nothing is known about this here: report it, with the command and what it printed.'
const credentials = 'Check user and password of the database URL.'
const unreachable = 'Check host and port of the database URL, and that the server is running.'
const otherProtocol =
  'What listens there is no PostgreSQL server, perhaps one of MariaDB or MySQL: check host and port of the database URL.'
const encrypted =
  'The server or its proxy wants TLS: add sslmode=verify-full to the database URL, and sslrootcert with the file of its certificate authority if that is not a public one.'
const notEncrypted =
  'The server has no TLS. Set it up there, or, only if nobody else can read the network between, take sslmode out of the database URL.'
const trusted =
  'Add sslrootcert=<file> to the database URL, with the certificate of the authority that signed the one of the server, as its provider gives it out.'

/** By SQLSTATE or its class. */
const byState: Readonly<Record<string, string>> = {
  '08': 'Check that the server, and the pooler before it, are running; then run it again.',
  '0A': 'Check the version of the server: PostgreSQL 15 or newer is needed.',
  '25006': 'This server is a standby, or its transactions are read-only: connect to the primary.',
  '28': credentials,
  '3D': 'Create the database, or correct its name in the database URL.',
  '40': 'Others were faster. Try again; nothing was changed.',
  '42501': 'Connect as the role that owns the schema.',
  '53': 'The server has no connections, memory or disk left for this. Free some, and run it again.',
  '55P03':
    'Somebody holds a lock that is needed here, perhaps another installer. Try again; nothing was changed.',
  '57': 'The server ended the statement or is shutting down. Try again; nothing was changed.',
}

/** Errors of MariaDB and MySQL, as their client calls them. */
const byMysql: Readonly<Record<string, string>> = {
  ER_ACCESS_DENIED_ERROR: credentials,
  ER_ACCESS_DENIED_NO_PASSWORD_ERROR: credentials,
  ER_DBACCESS_DENIED_ERROR:
    'Grant the user rights on the database, or correct its name in the database URL.',
  ER_BAD_DB_ERROR: 'Create the database, or correct its name in the database URL.',
  ER_NO_DB_ERROR: 'Name the database behind the host in the database URL.',
  ER_CON_COUNT_ERROR: 'The server has no connections left. End some, and run it again.',
  ER_HOST_NOT_PRIVILEGED: 'Let the server accept this machine, or connect from another one.',
  ER_TABLEACCESS_DENIED_ERROR: 'Connect as a user with rights on the tables of Holdfast.',
  HANDSHAKE_NO_SSL_SUPPORT:
    'The server has no TLS. Set it up there, or take ssl out of the database URL.',
  PROTOCOL_CONNECTION_LOST: unreachable,
}

/** By the code of a connection. */
const bySocket: Readonly<Record<string, string>> = {
  ENOTFOUND: 'Check host and port of the database URL: no name server knows the host.',
  EAI_AGAIN: 'The name server did not answer. Check the network, and run it again.',
  ECONNREFUSED: unreachable,
  ECONNRESET: unreachable,
  ECONNABORTED: unreachable,
  EHOSTUNREACH: unreachable,
  EHOSTDOWN: unreachable,
  ENETUNREACH: unreachable,
  ENETDOWN: unreachable,
  ENOTCONN: unreachable,
  EPIPE: unreachable,
  ETIMEDOUT: unreachable,
}

/** By the code of a certificate or of a handshake. */
const byCertificate: readonly (readonly [codes: RegExp, next: string])[] = [
  [
    /SELF_SIGNED|^UNABLE_TO_(?:VERIFY|GET_ISSUER)|^CERT_(?:UNTRUSTED|SIGNATURE_FAILURE|CHAIN_TOO_LONG|REJECTED)$|^INVALID_(?:CA|PURPOSE)$/,
    trusted,
  ],
  [
    /ALTNAME|^HOSTNAME_MISMATCH$/,
    'Connect by a name that the certificate of the server is for: correct the host of the database URL.',
  ],
  [
    /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID|REVOKED)$/,
    'Renew the certificate of the server, and check the clock of this machine.',
  ],
  [
    /^(?:CERT|CRL|UNABLE_TO_(?:DECRYPT|DECODE|GET_CRL))_|^ERR_(?:TLS|SSL|OSSL)_|^EPROTO$/,
    'Check sslmode, sslrootcert, sslcert and sslkey of the database URL, and that what listens there is PostgreSQL.',
  ],
]

/** What the client says without a code. */
const byMessage: readonly (readonly [message: RegExp, next: string])[] = [
  [/does not support SSL/, notEncrypted],
  [/SSL connection/, encrypted],
  [/^SASL/, credentials],
  [/^Received unexpected \w+ message from backend/, otherProtocol],
  [/timeout|terminated/, unreachable],
]

/** By the code of a file or of a process. */
const byFile: Readonly<Record<string, string>> = {
  EACCES: 'Give this user the right to read and write there, or name another place.',
  EPERM: 'Give this user the right to read and write there, or name another place.',
  EROFS: 'It cannot be written to: name another place.',
  EEXIST: 'A file is where a folder is needed: remove it, or name another place.',
  ENOTDIR: 'A file is where a folder is needed: remove it, or name another place.',
  EISDIR: 'A folder is where a file is needed: remove it, or name another place.',
  ENOENT: 'Create the folder that it should be in, or name another place.',
  ELOOP: 'Links lead in a circle there: name another place.',
  ENAMETOOLONG: 'The name is too long for this file system: name another place.',
  ENOSPC: 'The disk is full: free some space, and run it again.',
  EDQUOT: 'The disk is full for this user: free some space, and run it again.',
  EMFILE: 'This process may not open more files: raise the limit (`ulimit -n`), and run it again.',
  ENFILE: 'This machine may not open more files: end other processes, and run it again.',
  ENOMEM: 'This machine has no memory left: free some, and run it again.',
  EAGAIN: 'This machine has no room for another process: end some, and run it again.',
}

/** What to do about it. */
export function nextOf(known: Known, ofDatabase: boolean): string {
  const { code, message, call } = known
  if (isState(code)) {
    // How a server says that it takes no connection without TLS.
    if (code.startsWith('28') && /no encryption|SSL off|requires? (?:SSL|TLS)/i.test(message)) {
      return encrypted
    }
    return byState[code] ?? byState[code.slice(0, 2)] ?? otherwise
  }
  if (byMysql[code] !== undefined) return byMysql[code]
  const [, ofCertificate] = byCertificate.find(([codes]) => codes.test(code)) ?? []
  if (ofCertificate !== undefined) return ofCertificate
  if (isOfNetwork(known)) return bySocket[code] ?? unreachable
  if (call?.startsWith('spawn') === true)
    return 'Check the limits of this machine, and run it again.'
  if (byFile[code] !== undefined) return byFile[code]
  const [, ofMessage] = byMessage.find(([pattern]) => pattern.test(message)) ?? []
  if (ofMessage !== undefined) return ofMessage
  if (call !== undefined) return 'Check what it names, and run it again.'
  return ofDatabase ? otherwise : unexpected
}

/** A socket in the file system has codes of files, too. */
function isOfNetwork({ code, call }: Known): boolean {
  return Object.hasOwn(bySocket, code) || call === 'connect' || call === 'getaddrinfo'
}

/**
 * What happened. What the server says about data (classes 22 and 23) may quote it; what follows the code of a connection is
 * its address, and a certificate is compared with the host.
 */
export function messageOf(known: Known): string {
  const { code, message } = known
  if (isState(code)) return /^2[23]/.test(code) ? `SQLSTATE ${code}` : message
  if (/ALTNAME|^HOSTNAME_MISMATCH$/.test(code)) {
    return 'The certificate of the server is for another host than that of the database URL.'
  }
  if (code === 'ERR_SOCKET_BAD_PORT') return 'The port of the database URL is none.'
  if (!isOfNetwork(known)) return message
  const end = message.indexOf(code)
  return end === -1 ? message : message.slice(0, end + code.length)
}
