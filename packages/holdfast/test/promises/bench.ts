import type { Row } from '../../src/core/driver.ts'
import type { Holdfast } from '../../src/index.ts'

/** What a Holdfast may offer: of what its engine does not have, nothing is there. */
export type Offered<Tx> = Partial<Holdfast<Tx>>

/** One client on one server, behind names that all have in common. */
export interface Bench<Tx> {
  /** A Holdfast with connections of its own, as another process has it. */
  start(): Promise<Offered<Tx>>
  /** One statement in a transaction, by the client's own call. */
  run(tx: Tx, text: string): Promise<readonly Row[]>
  /** A transaction by the client's own call, as a caller has it who joins Holdfast to it. */
  own<T>(body: (tx: Tx) => Promise<T>): Promise<T>
  /** One statement by somebody else. */
  look(text: string): Promise<readonly Row[]>
  /** Makes the latest tick of a schedule due, as if everybody had slept through it. */
  sleepThrough(name: string): Promise<void>
}

/** The tables of these tests, in words that all engines understand; what they call a moment differs. */
export const tables = (moment: string): readonly string[] => [
  'CREATE TABLE promised_row (id INT PRIMARY KEY, v INT NOT NULL, version INT NOT NULL)',
  'INSERT INTO promised_row VALUES (1, 0, 1), (2, 0, 1), (3, 0, 1), (4, 0, 1), (5, 0, 1), (6, 0, 1)',
  'CREATE TABLE promised_effect (id INT, work VARCHAR(80))',
  ...['a', 'b'].map(
    (each) => `CREATE TABLE promised_job_${each} (id INT PRIMARY KEY, status VARCHAR(20) NOT NULL,
      claim_token VARCHAR(36), lease_until ${moment} NULL)`,
  ),
  ...['a', 'b'].map(
    (each) =>
      `INSERT INTO promised_job_${each} (id, status) VALUES (1, 'pending'), (2, 'pending'), (3, 'pending'), (4, 'pending')`,
  ),
]
