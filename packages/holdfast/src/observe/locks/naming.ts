import type { Executor } from '../../core/driver.ts'
import type { LockMemory } from '../../core/locks/lock-memory.ts'
import { Recent } from '../../core/recent.ts'
import { splitApplication } from '../../engines/postgres/tx/activity.ts'
import type { SeenLock, SeenLocks, SeenSession } from '../../engines/postgres/observe/locks.ts'
import {
  hashTexts,
  heldLeases,
  lookForNames,
  namesOf,
  notedNames,
} from '../../engines/postgres/observe/notes.ts'
import { installerLock, leaderLockName, meaningOf } from './known-locks.ts'
import {
  type HashedCandidate,
  labelCandidates,
  type LabelCandidates,
  type LockName,
} from './label.ts'
import { lockIdOf, pairId } from './lock-id.ts'
import type { NameSource } from '../model.ts'
import { isTrue } from '../../core/is-true.ts'

/** A name, and who says so. */
export interface ResolvedName extends LockName {
  readonly source: NameSource
  readonly meaning?: string
}

/** Names by the id of the lock. */
export type Names = ReadonlyMap<string, ResolvedName>

const mostRemembered = 10_000
/** Held leases that are tried as leaders, the latest first, and how soon again for the same lock. */
const mostLeases = 1_000
const leasesAgainMs = 5_000

/**
 * Finds out what advisory locks are called. A number never changes its name, so what was found once is
 * remembered. A name from a label counts only if its hash is the number of a lock that was seen.
 */
export class LockNaming {
  readonly #memory: LockMemory
  readonly #schema: string
  readonly #known = new Recent<string, ResolvedName>(mostRemembered)
  readonly #labels = new Recent<string, LabelCandidates>(1_000)
  readonly #hashes = new Recent<string, number>(mostRemembered)
  readonly #triedAsLeader = new Recent<string, number>(1_000)

  constructor(memory: LockMemory, schema: string) {
    this.#memory = memory
    this.#schema = schema
    const { id, ...name } = installerLock(schema)
    this.#known.set(id, resolved(name, 'known'))
  }

  /** The names of all advisory locks of this database that were seen. */
  async resolve(executor: Executor, seen: SeenLocks): Promise<Names> {
    const search = new Search(new Set(seen.locks.filter(isAdvisory).map(lockIdOf)))
    if (search.missing().length === 0) return search.names
    await this.#byLabels(executor, seen.sessions, search)
    for (const id of search.missing()) {
      const known = this.#known.get(id)
      const name = known ?? this.#used(id)
      // The label that said so may be gone; a note stays.
      const source = known?.source === 'registry' ? 'registry' : 'process'
      if (name !== undefined) search.found(id, name, source)
    }
    if (search.missing().some(isSmall)) {
      await this.#byHashes(executor, [...hashedIn(this.#memory)], search, 'process')
    }
    if (search.missing().length > 0) await this.#byNotes(executor, search)
    for (const [id, name] of search.names) this.#known.set(id, name)
    return search.names
  }

  async #byLabels(
    executor: Executor,
    sessions: readonly SeenSession[],
    search: Search,
  ): Promise<void> {
    const hashed: HashedCandidate[] = []
    for (const { application } of sessions) {
      const { label } = splitApplication(application)
      if (label === undefined) continue
      let candidates = this.#labels.get(label)
      if (candidates === undefined) {
        candidates = labelCandidates(label)
        this.#labels.set(label, candidates)
      }
      for (const { id, ...name } of candidates.ids) search.found(id, name, 'annotation')
      hashed.push(...candidates.hashed)
    }
    await this.#byHashes(executor, hashed, search, 'annotation')
  }

  /** Keys of hand-written SQL whose number only the server knows. */
  async #byHashes(
    executor: Executor,
    hashed: readonly HashedCandidate[],
    search: Search,
    source: NameSource,
  ): Promise<void> {
    const unknown = new Set(
      hashed.map(({ text }) => text).filter((text) => this.#hashes.get(text) === undefined),
    )
    if (unknown.size > 0) {
      for (const row of await executor.query(hashTexts([...unknown]))) {
        this.#hashes.set(String(row['text']), Number(row['hash']))
      }
    }
    for (const { text, high, ...name } of hashed) {
      const number = this.#hashes.get(text)
      if (number === undefined) continue
      search.found(high === undefined ? `1:${number}` : pairId(high, number), name, source)
    }
  }

  #used(id: string): LockName | undefined {
    const number = id.slice(2)
    return this.#memory.get(id.startsWith('1:') ? BigInt(number) : `legacy:${number}`)
  }

  /** What is in our schema, if it is there and this role may read it. */
  async #byNotes(executor: Executor, search: Search): Promise<void> {
    const [there] = await executor.query(lookForNames(this.#schema))
    if (isTrue(there?.['readable'])) {
      const rows = await executor.query(namesOf(this.#schema, search.missing()))
      for (const { id, ...name } of notedNames(rows)) search.found(id, name, 'registry')
    }
    if (isTrue(there?.['leases'])) await this.#byLeases(executor, search)
  }

  /** A leader by session shows no label, but its lease has a row. */
  async #byLeases(executor: Executor, search: Search): Promise<void> {
    const now = performance.now()
    const due = search
      .missing()
      .filter((id) => (this.#triedAsLeader.get(id) ?? -Infinity) < now - leasesAgainMs)
    if (due.length === 0) return
    for (const id of due) this.#triedAsLeader.set(id, now)
    for (const row of await executor.query(heldLeases(this.#schema, mostLeases))) {
      const leader = leaderLockName(String(row['scope']), String(row['name']))
      if (leader !== undefined) search.found(leader.id, leader, 'known')
    }
  }
}

/** What is looked for, and what was found; whoever finds a name first has found it. */
class Search {
  readonly names = new Map<string, ResolvedName>()
  readonly #wanted: ReadonlySet<string>

  constructor(wanted: ReadonlySet<string>) {
    this.#wanted = wanted
  }

  missing(): string[] {
    return [...this.#wanted].filter((id) => !this.names.has(id))
  }

  found(id: string, name: LockName, source: NameSource): void {
    if (this.#wanted.has(id) && !this.names.has(id)) this.names.set(id, resolved(name, source))
  }
}

/** Whether `hashtext`, which has 32 bits, can have given it. */
function isSmall(id: string): boolean {
  return id.startsWith('2:') || BigInt.asIntN(32, BigInt(id.slice(2))) === BigInt(id.slice(2))
}

function* hashedIn(memory: LockMemory): Generator<HashedCandidate> {
  for (const { lock, name, namespace } of memory.hashed()) {
    if (!('text' in lock)) continue
    const high = lock.kind === 'pair-hashtext' ? lock.high : undefined
    yield { text: lock.text, high, name, namespace }
  }
}

/** Advisory locks are of one database: the same number in another one is another lock. */
export function isAdvisory({ type, ours }: SeenLock): boolean {
  return type === 'advisory' && ours
}

function resolved({ name, namespace }: LockName, source: NameSource): ResolvedName {
  const meaning = meaningOf(namespace)
  return meaning === undefined
    ? { name, namespace, source }
    : { name, namespace, source: 'known', meaning }
}
