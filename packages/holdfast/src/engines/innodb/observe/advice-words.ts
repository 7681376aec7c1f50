import type { AdviceWords } from '../../../blocking/advice.ts'

/** What is said about sessions of MariaDB and MySQL. */
export const adviceWords: AdviceWords = {
  'deadlock-ahead': {
    what: 'Sessions wait for each other in a circle that InnoDB has not broken: it looks for none where innodb_deadlock_detect is off, or not all of these locks are its own.',
    fix: 'Take all keys in one call, which sorts them; do not mix them with LOCK TABLES, GET_LOCK or DDL.',
  },
  'order-violated': {
    what: 'It waits for a lock that comes before one it holds: somebody who takes them in order deadlocks with it.',
    fix: 'Take all keys in one call, which sorts them.',
  },
  'blocker-not-told': {
    what: 'It waits, and the server does not tell for whom: MariaDB does so neither of locks on definitions nor of GET_LOCK, nor where several transactions that have written nothing hold locks.',
    fix: 'Look at the longest transactions; whoever uses the same table is most likely in the way.',
  },
  'prepared-transaction': {
    what: 'A prepared transaction holds the lock, and no session will ever end it.',
    fix: 'XA COMMIT or XA ROLLBACK it; XA RECOVER lists them.',
  },
  'idle-in-transaction': {
    what: 'Its transaction is open and it does nothing, while others wait for what it holds.',
    fix: 'Check what it waits for outside of the database, or end it; on MariaDB idle_transaction_timeout does so by itself.',
  },
  'held-across-io': {
    what: 'It holds a lock while the application does something else than talking to the database.',
    fix: 'Do the slow work before or after the guard; where it has to be in between, use a lease.',
  },
  'long-transaction': {
    what: 'Its transaction has been open for more than a minute: locks are kept, and old versions of rows cannot be purged.',
    fix: 'Split the work into shorter transactions.',
  },
}
