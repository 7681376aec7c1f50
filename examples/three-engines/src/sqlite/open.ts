import { DatabaseSync } from 'node:sqlite'

export function open(file: string): DatabaseSync {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON')
  return db
}
