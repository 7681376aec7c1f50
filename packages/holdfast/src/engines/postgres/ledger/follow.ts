import type { Statement } from '../../../core/driver.ts'
import { ledgerCall } from './call.ts'

export function startFollowing(
  schema: string,
  name: string,
  book: string | undefined,
  fromNow: boolean,
): Statement {
  return ledgerCall(
    schema,
    'start_following',
    ['text', 'text', 'bool'],
    [name, book ?? null, String(fromNow)],
  )
}

/** Who follows, and which book, if not all. */
export interface Follower {
  readonly name: string
  readonly book: string | undefined
}

/** An account as it is stored. */
export type StoredAccountId = readonly [bucket: number, account: string]

const first: StoredAccountId = [-1, '00000000-0000-0000-0000-000000000000']

/** `recentMs`: only where there was an operation within so long. */
export function unreadAccounts(
  schema: string,
  { name, book }: Follower,
  recentMs: number | undefined,
  [bucket, account]: StoredAccountId = first,
): Statement {
  return ledgerCall(
    schema,
    'unread_accounts',
    ['text', 'text', 'int8', 'int2', 'uuid', 'int4'],
    [
      name,
      book ?? null,
      recentMs === undefined ? null : String(recentMs),
      String(bucket),
      account,
      '1000',
    ],
  )
}

export function followAccounts(
  schema: string,
  { name, book }: Follower,
  accounts: readonly StoredAccountId[],
  most: number,
): Statement {
  return ledgerCall(
    schema,
    'follow',
    ['text', 'text', 'int2[]', 'uuid[]', 'int4'],
    [
      name,
      book ?? null,
      `{${accounts.map(([bucket]) => bucket).join(',')}}`,
      `{${accounts.map(([, account]) => account).join(',')}}`,
      String(most),
    ],
  )
}

export function noteFollowed(schema: string, name: string, agoMs: number): Statement {
  return ledgerCall(schema, 'note_followed', ['text', 'int8'], [name, String(agoMs)])
}

export function stopFollowing(schema: string, name: string): Statement {
  return ledgerCall(schema, 'stop_following', ['text'], [name])
}

export function readFollowers(schema: string): Statement {
  return ledgerCall(schema, 'read_followers', [], [])
}
