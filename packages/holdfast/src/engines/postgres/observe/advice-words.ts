import type { AdviceWords } from '../../../blocking/advice.ts'

/** What is said about sessions of PostgreSQL. */
export const adviceWords: AdviceWords = {
  'deadlock-ahead': {
    what: 'Sessions wait for each other in a circle; PostgreSQL will end one of them with 40P01.',
    fix: 'Take all keys in one call, which sorts them, or always take them in the same order.',
  },
  'order-violated': {
    what: 'It waits for a lock that comes before one it holds: somebody who takes them in order deadlocks with it.',
    fix: 'Take all keys in one call, which sorts them; do not turn a shared lock into an exclusive one.',
  },
  'prepared-transaction': {
    what: 'A prepared transaction holds the lock, and no session will ever end it.',
    fix: 'COMMIT PREPARED or ROLLBACK PREPARED it; pg_prepared_xacts lists them.',
  },
  'idle-in-transaction': {
    what: 'Its transaction is open and it does nothing, while others wait for what it holds.',
    fix: 'Check what the session is waiting for, or end it; idle_in_transaction_session_timeout ends it automatically.',
  },
  'held-across-io': {
    what: 'It holds a lock while the application does something else than talking to the database.',
    fix: 'Do the slow work before or after the guard; where it has to be in between, use a hold or a lease.',
  },
  'long-transaction': {
    what: 'Its transaction has been open for more than a minute: locks are kept, and vacuum cannot clean up behind it.',
    fix: 'Split the work into shorter transactions; transaction_timeout (PostgreSQL 17) or statement_timeout bounds it.',
  },
}
