/** What to do is told by what kind of error it is: of a file, of a connection, of a certificate, of the server. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Failure, failureOf } from '../../src/failure.ts'
import { runCommand } from '../support/run-command.ts'

const aboutDatabase = /database|server|host and port/i

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-files-'))
  writeFileSync(join(folder, 'package.json'), '{ "dependencies": { "pg": "8" } }')
  writeFileSync(join(folder, 'f'), '')
  mkdirSync(join(folder, 'g/SKILL.md'), { recursive: true })
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('commands that talk to no database say nothing about one', () => {
  test.each([
    ['skill add f', 'EEXIST', /file is where a folder is needed/],
    ['skill add f/x', 'ENOTDIR', /file is where a folder is needed/],
    ['skill add g --overwrite', 'EISDIR', /folder is where a file is needed/],
    ['init --file f/x.ts --yes', 'EEXIST', /file is where a folder is needed/],
    ['init --file /proc/x.ts --yes', 'ENOENT', /Create the folder/],
  ])('%s', async (line, code, next) => {
    for (const json of [['--json'], []]) {
      const { code: exit, out, err } = await runCommand([...line.split(' '), ...json], {}, folder)
      expect([exit, out]).toEqual([1, ''])
      expect(err).toContain(code)
      expect(err).not.toMatch(aboutDatabase)
      expect(err).toMatch(next)
      if (json.length > 0) expect(JSON.parse(err)).toMatchObject({ error: { code } })
    }
  })

  test.each(['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EMFILE', 'ELOOP', 'EBUSY'])('%s', (code) => {
    const error = Object.assign(new Error(`${code}: no, open 'x'`), { code, syscall: 'open' })
    for (const ofDatabase of [true, false]) {
      const { next } = failureOf(error, ofDatabase)
      expect(next).not.toMatch(aboutDatabase)
      expect(next).toMatch(/[a-z]/)
    }
  })

  test('what is not known is not told to be about a database', () => {
    expect(failureOf(new TypeError('x is not a function'), false).next).not.toMatch(aboutDatabase)
    const spawned = { code: 'EAGAIN', syscall: 'spawn node', message: 'spawn node EAGAIN' }
    expect(failureOf(spawned, false).next).toMatch(/limits of this machine/)
  })
})

const told = (error: object): Failure => failureOf(Object.assign(new Error(), error))

describe('connections', () => {
  test.each([
    ['connect', 'ECONNREFUSED', '10.1.2.3:5432', /host and port/],
    ['connect', 'ENOENT', '/tmp/.s.PGSQL.5432', /host and port/],
    ['connect', 'EACCES', '/tmp/.s.PGSQL.5432', /host and port/],
    ['getaddrinfo', 'ENOTFOUND', 'tp4ss', /no name server knows/],
    ['getaddrinfo', 'EAI_AGAIN', 'tp4ss', /name server did not answer/],
    ['connect', 'EHOSTUNREACH', '10.1.2.3:5432 - Local (0.0.0.0:0)', /host and port/],
    ['read', 'ECONNRESET', '', /host and port/],
  ])('%s %s, without the address', (syscall, code, address, next) => {
    const failure = told({ code, syscall, message: `${syscall} ${code} ${address}` })
    expect(failure).toEqual({
      code,
      message: `${syscall} ${code}`,
      next: expect.stringMatching(next),
    })
  })
})

describe('certificates', () => {
  test.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'sslrootcert'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'sslrootcert'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'sslrootcert'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'sslrootcert'],
    ['CERT_HAS_EXPIRED', 'Renew'],
    ['CERT_NOT_YET_VALID', 'clock'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'name'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'sslmode'],
    ['ERR_OSSL_PEM_NO_START_LINE', 'sslcert'],
    ['EPROTO', 'sslmode'],
  ])('%s', (code, word) => {
    const { message, next } = told({ code, message: 'Host: tp4ss. is not in the list' })
    expect(next).toContain(word)
    if (code.includes('ALTNAME')) expect(message).not.toContain('tp4ss')
  })

  test('what the client says without a code', () => {
    const next = (message: string): string => told({ message }).next
    expect(next('The server does not support SSL connections')).toContain('has no TLS')
    expect(next('There was an error establishing an SSL connection')).toContain('sslmode')
    expect(next('SASL: client password must be a string')).toContain('password')
    expect(next('Received unexpected copyData message from backend.')).toContain('no PostgreSQL')
    expect(next('Connection terminated unexpectedly')).toContain('host and port')
  })
})

describe('the server', () => {
  test.each([
    ['28P01', 'password authentication failed for user "app"', /user and password/],
    [
      '28000',
      'no pg_hba.conf entry for host "1", user "a", database "b", no encryption',
      /sslmode/,
    ],
    ['3D000', 'database "shop" does not exist', /Create the database/],
    ['08P01', 'server login failed', /pooler/],
    ['25006', 'cannot execute UPDATE in a read-only transaction', /primary/],
    ['53300', 'sorry, too many clients already', /connections/],
    ['57P03', 'the database system is starting up', /Try again/],
    ['XX000', 'internal', /holdfast doctor/],
    ['22P02', 'invalid input syntax for type bigint: "s3cret"', /holdfast doctor/],
  ])('%s', (code, message, next) => {
    const failure = told({ code, message })
    expect(failure.next).toMatch(next)
    expect(failure.message).not.toContain('s3cret')
  })
})
