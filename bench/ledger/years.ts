import { hash, randomBytes } from 'node:crypto'
import { bucketCount, bucketOf } from '../../packages/holdfast/src/core/bucket.ts'

/** What operation ids are: both kinds are in one ledger, each in half of the buckets. */
export type IdKind = 'random' | 'ordered'

/** Months before this one, each with its part of the movements. */
export const months = 24

/** A past of so many movements: a tenth as many accounts with nine each, and two accounts with a twentieth of them each. */
export interface Years {
  readonly movements: number
  readonly accounts: number
  /** Of either deep account. */
  readonly deep: number
}

export const each = 9

export function yearsOf(movements: number): Years {
  return { movements, accounts: movements / 10, deep: movements / 20 }
}

/** The bucket is the first column of the index on ids, so each half of the buckets is an index of its own. */
export const firstRandomBucket = bucketCount / 2

function kindOf(key: string): IdKind {
  return bucketOf(key) < firstRandomBucket ? 'ordered' : 'random'
}

export const deepKeys: Readonly<Record<IdKind, string>> = {
  ordered: deepKey('ordered'),
  random: deepKey('random'),
}

function deepKey(kind: IdKind): string {
  for (let n = 0; ; n += 1) if (kindOf(`deep-${n}`) === kind) return `deep-${n}`
}

/** Any account whose operations have ids of a kind, but the deep one. */
export function anyKeyOf(kind: IdKind, { accounts }: Years): string {
  for (;;) {
    const key = `key-${1 + Math.floor(Math.random() * accounts)}`
    if (kindOf(key) === kind) return key
  }
}

/** A version 7 UUID: the milliseconds since 1970, then chance. */
export function orderedId(): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(Date.now(), 0, 6)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  return dashed(bytes.toString('hex'))
}

/** What the operation behind movement `number` of the deep account with random ids is called. */
export function randomLoadedId(number: number): string {
  return dashed(hash('md5', `${deepKeys.random}:${number}`))
}

function dashed(hex: string): string {
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-')
}
