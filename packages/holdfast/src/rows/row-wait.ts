import type { Wait, WaitWord } from '../core/options/wait.ts'

/**
 * What to do when a row is locked by someone else: wait for so long (`'2 s'`, or milliseconds) for all rows
 * together, counted from the call; fail at once (`'nowait'`); leave the row out (`'skip'`); or wait as long
 * as the transaction's own lock_timeout allows (`'inherit'`, which used to be called `'block'`).
 */
export type RowWait = TableWait | 'skip'

/** The same for a table, which cannot be left out. */
export type TableWait = Wait | OldWait

/** @deprecated Say `'inherit'`. */
type OldWait = 'block'

export const rowWords: readonly WaitWord[] = ['nowait', 'skip', 'inherit', 'block']
export const tableWords: readonly WaitWord[] = ['nowait', 'inherit', 'block']
