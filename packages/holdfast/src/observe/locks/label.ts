import { keysCalled } from '../../core/locks/keys-called.ts'
import { isStorable } from '../../core/storable.ts'
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
    for (const key of keysCalled(text)) ids.push({ ...key, id: `1:${key.id}` })
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
