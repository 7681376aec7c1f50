/** A connection string of libpq, as far as a move has to understand it. */
interface PeerConnection {
  /** Who it names as its user. */
  readonly user: string | undefined
  /** The same connection, on which row-level security makes a statement fail and leaves no row out. */
  readonly unfiltered: string
}

const unfilteredOption = '-c row_security=off'
const uriPattern = /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/]*)(?::[^@/]*)?@)?/
const pairPattern =
  /(?<key>\w+)\s*=\s*(?:'(?<quoted>(?:[^'\\]|\\.)*)'|(?<plain>(?:[^\s'\\]|\\.)(?:[^\s\\]|\\.)*))/gs

/**
 * Reads one in either form. What cannot be read is left as it is: the server says what is wrong with it. PostgreSQL
 * passes on `options` since 15.16, 16.12, 17.8 and 18.2; before, it leaves them out.
 */
export function peerConnection(connection: string): PeerConnection {
  const uri = uriPattern.exec(connection)
  return uri === null ? readPairs(connection) : readUri(connection, uri)
}

function readUri(connection: string, { 0: start, groups = {} }: RegExpExecArray): PeerConnection {
  const at = connection.indexOf('?', start.length)
  const base = at === -1 ? connection : connection.slice(0, at)
  const pairs = at === -1 ? [] : connection.slice(at + 1).split('&')
  const valueOf = (key: string): string | undefined =>
    pairs.findLast((pair) => pair.startsWith(`${key}=`))?.slice(key.length + 1)
  const user = valueOf('user') ?? groups['user']
  const options = [valueOf('options'), encodeURIComponent(unfilteredOption)]
  const others = pairs.filter((pair) => pair !== '' && !pair.startsWith('options='))
  const all = [...others, `options=${options.filter(Boolean).join('%20')}`]
  return { user: user && decoded(user), unfiltered: `${base}?${all.join('&')}` }
}

function readPairs(connection: string): PeerConnection {
  const values = new Map<string, string>()
  let rest = connection
  for (const { 0: pair, groups = {} } of connection.matchAll(pairPattern)) {
    rest = rest.replace(pair, () => '')
    values.set(groups['key'] ?? '', groups['quoted'] ?? groups['plain'] ?? '')
  }
  // Half a quotation, or no pairs at all.
  if (rest.trim() !== '') return { user: undefined, unfiltered: connection }
  const options = [values.get('options'), unfilteredOption].filter(Boolean).join(' ')
  return {
    user: values.get('user')?.replaceAll(/\\(.)/gs, '$1'),
    // The last one counts.
    unfiltered: `${connection} options='${options}'`,
  }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
