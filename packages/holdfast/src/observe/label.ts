import { lockKey } from '../core/lock-key.ts'
import { isStorable } from '../core/storable.ts'
import { pairId } from './lock-id.ts'

/** What an advisory lock is called. */
export interface LockName {
  readonly name: string
  readonly namespace: string
}

/** A name that a label may stand for, and the lock it would be. */
export interface Candidate extends LockName {
  readonly id: string
}

/** A legacy key whose number only the server can tell. */
export interface HashedCandidate extends LockName {
  readonly text: string
  /** Of a pair: its first number. */
  readonly high: number | undefined
}

export interface LabelCandidates {
  readonly ids: readonly Candidate[]
  readonly hashed: readonly HashedCandidate[]
}

/** Longer names are left to the registry: each colon doubles the ways to read a name. */
const mostColons = 8

/**
 * Everything that a label may say. Any client of the database can write one, so what no key can be is passed
 * over, and never an error. It is the name of a key, whose parts are joined by colons that may also
 * be in the parts, it may count further keys behind it, and it may have been cut off. So nothing here is
 * true before it was compared with the number of a lock.
 */
export function labelCandidates(label: string): LabelCandidates {
  const alone = label.replace(/ \+\d+$/, '')
  const texts = new Set(
    [label, alone].flatMap((text) => [text, unescaped(text)]).filter(isStorable),
  )
  const ids: Candidate[] = []
  const hashed: HashedCandidate[] = []
  for (const text of texts) {
    ids.push(...groupings(text))
    const legacy = /^legacy:(.*)$/s.exec(text)?.[1]
    if (legacy !== undefined) addLegacy(text, legacy, ids, hashed)
  }
  return { ids, hashed }
}

/** From version 16 on the server writes what is no plain ASCII in application_name as `\xc3\xa9`. */
function unescaped(text: string): string {
  if (!text.includes('\\x')) return text
  const bytes: number[] = []
  for (let at = 0; at < text.length; ) {
    const escape = /^\\x([0-9a-f]{2})/.exec(text.slice(at, at + 4))
    bytes.push(escape === null ? text.charCodeAt(at) : Number.parseInt(escape[1] as string, 16))
    at += escape === null ? 1 : 4
  }
  return Buffer.from(bytes).toString('utf8')
}

/** All keys that have this name. */
function* groupings(name: string): Generator<Candidate> {
  const pieces = name.split(':')
  const colons = pieces.length - 1
  if (colons < 1 || colons > mostColons) return
  // Each bit says whether a colon separates, rather than being part of a part.
  for (let bits = 1; bits < 2 ** colons; bits += 1) {
    const parts = ['']
    pieces.forEach((piece, at) => {
      if (at === 0) parts[0] = piece
      else if ((bits & (1 << (at - 1))) !== 0) parts.push(piece)
      else parts[parts.length - 1] += `:${piece}`
    })
    if (parts.includes('')) continue
    const [namespace = '', ...rest] = parts
    const { lock } = lockKey(namespace, ...rest)
    yield { id: `1:${lock.id}`, name, namespace }
  }
}

function addLegacy(name: string, text: string, ids: Candidate[], hashed: HashedCandidate[]): void {
  const namespace = 'legacy'
  const [, high, low, inner] =
    /^(?:(-?\d{1,10}),)?(?:(-?\d{1,19})|hashtext\((.*)\))$/s.exec(text) ?? []
  if (inner !== undefined) {
    hashed.push({
      text: inner,
      high: high === undefined ? undefined : Number(high),
      name,
      namespace,
    })
  } else if (low !== undefined) {
    ids.push({
      id: high === undefined ? `1:${BigInt(low)}` : pairId(Number(high), Number(low)),
      name,
      namespace,
    })
  }
}
