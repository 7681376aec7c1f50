/** Tables and rows that racy entries and their safe twins share, and what is asked of them. */
export const account = {
  tables: ['CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL)'],
  rows: ['INSERT INTO account VALUES (1, 100), (2, 100)'],
}
export const balance = 'SELECT n FROM account WHERE id = 1'
export const setBalance = 'UPDATE account SET n = $1 WHERE id = 1'

export const stock = {
  tables: [
    'CREATE TABLE stock (id int PRIMARY KEY, n int NOT NULL)',
    'CREATE TABLE sale ({record}, who text)',
  ],
  rows: ['INSERT INTO stock VALUES (1, 1)'],
}

export const jobs = {
  tables: ['CREATE TABLE job (id int PRIMARY KEY, owner text)'],
  rows: ['INSERT INTO job VALUES (1, NULL), (2, NULL)'],
}

export const sameEmail = `SELECT count(*)::int AS n FROM users WHERE email = 'x'`

export const uploads = {
  tables: [
    'CREATE TABLE owner (id int PRIMARY KEY)',
    'CREATE TABLE upload ({record}, owner int, who text)',
  ],
  rows: ['INSERT INTO owner VALUES (1)'],
}
export const uploadCount = 'SELECT count(*)::int AS n FROM upload'

export const onCall = {
  tables: ['CREATE TABLE doctor (name text PRIMARY KEY, on_call bool NOT NULL)'],
  rows: [`INSERT INTO doctor VALUES ('a', true), ('b', true)`],
}
export const doctors = 'SELECT count(*)::int AS n FROM doctor WHERE on_call'
