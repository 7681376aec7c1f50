/** With --json every failure is `{"error":{"code","message","next"}}`, as docs/cli.md says. */
import { type ErrorCode, errorCodes, HoldfastError } from 'holdfast/errors'
import { describe, expect, test } from 'vitest'
import { failureOf } from '../../src/failure.ts'
import { runCommand } from '../support/run-command.ts'

const codes = Object.keys(errorCodes) as ErrorCode[]
const blocker = { pid: 7, name: 'cart:1', ageMs: 5, state: 'active', query: '' }

describe('an error of the library', () => {
  test('a missing schema is told in words of the command line', () => {
    const { next } = failureOf(new HoldfastError('SCHEMA_MISSING'))
    expect(next).toMatch(/^Run `holdfast migrate`/)
    expect(next).toContain('--schema')
    expect(next).not.toContain('createHoldfast')
  })

  const asTheyAre = codes.filter((code) => code !== 'SCHEMA_MISSING')
  test.each(asTheyAre)('%s: the next step is apart from the message', (code) => {
    const { next, what } = errorCodes[code]
    expect(failureOf(new HoldfastError(code))).toEqual({ code, message: `${code}: ${what}`, next })
    const about = new HoldfastError(code, { details: { subject: 'it' }, blockers: [blocker] })
    expect(failureOf(about)).toEqual({
      code,
      message: `${code} (it): ${what} Blocked by pid 7, cart, for 5 ms, active.`,
      next,
    })
  })

  test('what PostgreSQL said belongs to the message', () => {
    const cause = Object.assign(new Error('permission denied'), { code: '42501' })
    const error = new HoldfastError('SCHEMA_FAILED', { cause })
    expect(failureOf(error)).toEqual({
      code: 'SCHEMA_FAILED',
      message: expect.stringMatching(/\nPostgreSQL said: permission denied$/),
      next: errorCodes.SCHEMA_FAILED.next,
    })
  })

  test('what others said is not told as said by PostgreSQL', () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const unavailable = new HoldfastError('CONNECTION_UNAVAILABLE', { cause: refused })
    const ours = Object.assign(new Error('a bucket is not there'), { code: 'HF003' })
    const pipe = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    const messageOf = (cause: unknown): string =>
      failureOf(new HoldfastError('SHARD_PRIMARY_NEEDED', { cause })).message
    expect(messageOf(unavailable)).toMatch(/\nReason: connect ECONNREFUSED$/)
    expect(messageOf(pipe)).toMatch(/\nReason: write EPIPE$/)
    expect(messageOf(ours)).toBe(messageOf(undefined))
  })

  test('of another copy, with a code that is not known here, is told as it is', () => {
    const error = Object.assign(new HoldfastError('OPTION_INVALID'), { code: 'FROM_LATER' })
    expect(failureOf(error)).toEqual({ code: 'FROM_LATER', message: error.message, next: '' })
  })
})

describe('what is not understood', () => {
  const secret = 'postgres://u:s3cret@127.0.0.1:1/x'
  const general = 'Run `holdfast --help`.'
  const first = 'The command comes first, and its flags after it.'
  const of = (command: string): string => `Run \`holdfast ${command} --help\`.`
  test.each([
    [['--json'], first, general],
    [['migarte', '--json'], 'No such command: migarte. Did you mean migrate?', general],
    [[secret, '--json'], 'No such command.', general],
    [['--json', 'migrate'], first, general],
    [['--database-url', secret, 'locks', '--json'], first, general],
    [[`--database-url=${secret}`, 'locks', '--json'], first, general],
    [['migrate', '--json', '--nope'], "Unknown option '--nope'.", of('migrate')],
    [['migrate', secret, '--json'], 'Only flags can follow the command.', of('migrate')],
    [['grants', '--json'], '--role is needed.', of('grants')],
    [['why', '--json'], '<pid> is needed.', of('why')],
    [['why', 'x', '--json', '--database-url', secret], /^<pid> is the process id/, of('why')],
    [['migrate', '--json'], /^migrate needs a database: /, of('migrate')],
    [['plan', '--schema', 'public', '--json'], /^--schema .*\.$/, of('plan')],
    [['plan', '--config', '/nowhere.json', '--json'], /cannot be read/, of('plan')],
  ])('%j: one line of JSON, exit code 2', async (args, message, next) => {
    const { code, out, err } = await runCommand(args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^\{.*\}\n$/)
    expect(JSON.parse(err)).toEqual({
      error: {
        code: 'USAGE',
        message: typeof message === 'string' ? message : expect.stringMatching(message),
        next,
      },
    })
    expect(err).not.toContain('s3cret')
  })

  test('without --json it is text', async () => {
    const { code, err } = await runCommand(['grants'])
    expect(code).toBe(2)
    expect(err).toMatch(/^--role is needed\.\n\nUsage: holdfast grants \[flags\]\n/)
  })
})

describe('what is asked for without a command', () => {
  test.each([
    [['--help', '--json'], { usage: expect.stringMatching(/^Usage: holdfast <command>/) }],
    [['help', '--json'], { usage: expect.stringMatching(/^Usage: holdfast <command>/) }],
    [['locks', '--help', '--json'], { usage: expect.stringMatching(/^Usage: holdfast locks/) }],
    [['--version', '--json'], { version: expect.stringMatching(/^\d+\.\d+\.\d+$/) }],
  ])('%j: one line of JSON', async (line, told) => {
    const { code, out, err } = await runCommand(line)
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/^\{.*\}\n$/)
    expect(JSON.parse(out)).toEqual(told)
  })

  test('without --json it is text', async () => {
    expect((await runCommand(['locks', '--help'])).out).toMatch(/^Usage: holdfast locks/)
    expect((await runCommand(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})
