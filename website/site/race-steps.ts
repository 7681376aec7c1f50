/** The race of the landing page, statement by statement: one upload each from two devices of a user with 99 of 100 files. */
export interface RaceStep {
  readonly who: 'phone' | 'laptop'
  readonly statement: string
  /** What PostgreSQL answers. */
  readonly answer?: string
  /** What it means, in a sentence. */
  readonly note: string
  /** Files that are committed after this step. */
  readonly stored: number
}

export const limit = 100

export const race: readonly RaceStep[] = [
  {
    who: 'phone',
    statement: 'BEGIN',
    note: 'The phone uploads a file. It opens a transaction.',
    stored: 99,
  },
  {
    who: 'phone',
    statement: 'SELECT count(*) FROM uploads',
    answer: '99',
    note: 'The phone finds 99 of 100: there is room for one.',
    stored: 99,
  },
  {
    who: 'laptop',
    statement: 'BEGIN',
    note: 'The laptop of the same user uploads a file at the same moment.',
    stored: 99,
  },
  {
    who: 'laptop',
    statement: 'SELECT count(*) FROM uploads',
    answer: '99',
    note: 'The laptop finds 99 as well: the phone has not written anything yet.',
    stored: 99,
  },
  {
    who: 'laptop',
    statement: 'INSERT INTO uploads',
    answer: '1 row',
    note: 'The laptop writes its file.',
    stored: 99,
  },
  {
    who: 'laptop',
    statement: 'COMMIT',
    note: 'Now there are 100. What the phone has read is no longer true, and nobody tells it.',
    stored: 100,
  },
  {
    who: 'phone',
    statement: 'INSERT INTO uploads',
    answer: '1 row',
    note: 'The phone writes its file, because it has read 99.',
    stored: 100,
  },
  {
    who: 'phone',
    statement: 'COMMIT',
    note: '101 of 100. No error, no log line, both requests answered 200.',
    stored: 101,
  },
]

export const guarded: readonly RaceStep[] = [
  {
    who: 'phone',
    statement: 'BEGIN, lock uploads:ann',
    answer: 'granted',
    note: 'The guard opens the transaction and takes a lock with the name of the user.',
    stored: 99,
  },
  {
    who: 'laptop',
    statement: 'BEGIN, lock uploads:ann',
    answer: 'waits',
    note: 'The laptop asks for the same lock and waits. It has not read anything yet.',
    stored: 99,
  },
  {
    who: 'phone',
    statement: 'SELECT count(*) FROM uploads',
    answer: '99',
    note: 'The phone finds 99 of 100. Nobody else can write for this user now.',
    stored: 99,
  },
  {
    who: 'phone',
    statement: 'INSERT INTO uploads',
    answer: '1 row',
    note: 'The phone writes its file.',
    stored: 99,
  },
  {
    who: 'phone',
    statement: 'COMMIT',
    note: 'The lock ends with the transaction. There is nothing to release.',
    stored: 100,
  },
  {
    who: 'laptop',
    statement: 'lock uploads:ann',
    answer: 'granted',
    note: 'Now it is the laptop’s turn.',
    stored: 100,
  },
  {
    who: 'laptop',
    statement: 'SELECT count(*) FROM uploads',
    answer: '100',
    note: 'The laptop finds 100: it reads what the phone has committed.',
    stored: 100,
  },
  {
    who: 'laptop',
    statement: 'ROLLBACK',
    note: '100 of 100. The laptop is refused, and the user is told so.',
    stored: 100,
  },
]
