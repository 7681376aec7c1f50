import { describe, expect, test } from 'vitest'
import { FailedAttempts } from '../../src/auth/failed-attempts.ts'
import { OwnRevocations } from '../../src/auth/revocations.ts'
import { Sessions } from '../../src/auth/sessions.ts'
import { clientBehind } from '../../src/http/trusted-proxies.ts'
import { checkedBase, routeOf } from '../../src/http/base-path.ts'
import { refusals } from '../../src/core/refusals.ts'
import { fixedText } from '../../src/core/shown-text.ts'
import { History } from '../../src/watch/history.ts'
import { existsSync, readFileSync } from 'node:fs'

describe('wrong attempts', () => {
  test('take no more room than there is, and the latest stay', () => {
    const attempts = new FailedAttempts(() => 0)
    for (let index = 0; index < 5_000; index += 1)
      attempts.add({ address: `10.0.${index >> 8}.${index & 255}` })
    expect(attempts.size).toBe(2_000)
    for (let count = 0; count < 10; count += 1) attempts.add({ address: 'last' })
    expect(attempts.waitMs({ address: 'last' })).toBe(60_000)
  })

  test('of addresses that are not known are counted together, and more generously', () => {
    const attempts = new FailedAttempts(() => 0)
    for (let count = 0; count < 59; count += 1) attempts.add({ address: undefined })
    expect(attempts.waitMs({ address: undefined })).toBe(0)
    attempts.add({ address: undefined })
    expect(attempts.waitMs({ address: undefined })).toBe(60_000)
    expect(attempts.waitMs({ address: '10.0.0.1' })).toBe(0)
  })

  test('of one IPv6 network are counted together, and of two are not', () => {
    const attempts = new FailedAttempts(() => 0)
    for (let index = 0; index < 10; index += 1) attempts.add({ address: `2001:db8:0:1::${index}` })
    expect(attempts.waitMs({ address: '2001:DB8::1:ffff:0:0:1' })).toBe(60_000)
    expect(attempts.waitMs({ address: '2001:db8:0:1:2:3:4:5%eth0' })).toBe(60_000)
    expect(attempts.waitMs({ address: '2001:db8:0:2::1' })).toBe(0)
    expect(attempts.waitMs({ address: '::1' })).toBe(0)
  })
})

describe('R4: where a request comes from', () => {
  test.each([
    ['nobody is trusted', undefined, '10.0.0.1', '1.1.1.1, 2.2.2.2', '10.0.0.1'],
    ['one hop', 1, '10.0.0.1', '1.1.1.1, 2.2.2.2', '2.2.2.2'],
    ['two hops', 2, '10.0.0.1', '1.1.1.1, 2.2.2.2', '1.1.1.1'],
    ['more hops than were made', 5, '10.0.0.1', '1.1.1.1', '10.0.0.1'],
    ['one hop, of a mount that knows no peer', 1, undefined, '1.1.1.1, 2.2.2.2', '2.2.2.2'],
    ['a list', ['10.0.0.0/8'], '10.0.0.1', '1.1.1.1, 2.2.2.2, 10.9.9.9', '2.2.2.2'],
    ['a list without the peer', ['10.0.0.0/8'], '11.0.0.1', '1.1.1.1', '11.0.0.1'],
    [
      'a list, and a mount that knows no peer',
      ['10.0.0.0/8'],
      undefined,
      '1.1.1.1, 10.9.9.9',
      '1.1.1.1',
    ],
    ['all are proxies', ['10.0.0.0/8'], '10.0.0.1', '10.0.0.2', '10.0.0.2'],
    ['IPv4 on a socket of both kinds', ['10.0.0.0/8'], '::ffff:10.0.0.1', '1.1.1.1', '1.1.1.1'],
    ['IPv6 with brackets and port', ['fd00::/8'], 'fd00::1', '[2001:db8::7]:443', '2001:db8::7'],
    ['IPv4 with a port', 1, '10.0.0.1', '1.1.1.1:5000', '1.1.1.1'],
    ['what is no address', ['10.0.0.0/8'], '10.0.0.1', '1.1.1.1, unknown', undefined],
    ['no header', 1, '10.0.0.1', null, '10.0.0.1'],
  ] as const)('%s', (_, trust, peer, forwarded, client) => {
    expect(clientBehind(trust)(peer, forwarded)).toBe(client)
  })

  test.each([[-1], [1.5], [21], [['nonsense']], [['10.0.0.0/99']], [true], ['10.0.0.7']])(
    '%j is refused',
    (trust) => {
      expect(() => clientBehind(trust as never)).toThrow(/trustProxy/)
    },
  )
})

describe('sessions', () => {
  const limits = { idleMs: 1_000, absoluteMs: 10_000 }

  test('a cookie is made anew only when that is worth it', () => {
    let nowMs = 0
    const sessions = new Sessions(Buffer.from('key'), limits, () => nowMs, undefined)
    const session = sessions.start('print')
    expect(sessions.touch(session)).toBeUndefined()
    nowMs = 250
    expect(sessions.touch(session)).toEqual({ ...session, seenMs: 250 })
  })

  test('that was logged out of is never good again, however many others are', async () => {
    const sessions = new Sessions(Buffer.from('key'), limits, () => 0, undefined)
    const stolen = sessions.start('print')
    const value = sessions.write(stolen)
    await sessions.end(stolen)
    for (let count = 0; count < 100_001; count += 1) await sessions.end(sessions.start('other'))
    await expect(sessions.read(value)).rejects.toThrow('ended')
  })

  test('a signature for one purpose is none for another', async () => {
    const sessions = new Sessions(Buffer.from('key'), limits, () => 0, new OwnRevocations(() => 0))
    const text = 'id.print.0.0'
    await expect(sessions.read(`${text}.${sessions.csrfOf(text)}`)).rejects.toThrow('ended')
  })
})

describe('paths', () => {
  test.each([
    ['/ops/console/api/info', '/ops/console', 'api/info'],
    ['/api/info', '/ops/console', 'api/info'],
    ['/ops/console', '/ops/console', ''],
    ['/ops/console/', '/ops/console', ''],
    ['/ops/consoles', '/ops/console', 'ops/consoles'],
    ['/', '', ''],
    ['//api/info', '', '/api/info'],
    ['/ops%2fconsole/x', '/ops/console', 'ops%2fconsole/x'],
  ])('%s under %s is %s', (path, base, route) => {
    expect(routeOf(path, base)).toBe(route)
  })

  test.each([
    ['', ''],
    ['/', ''],
    ['/a', '/a'],
    ['/a/b.c/', '/a/b.c'],
  ])('base %s is %s', (base, checked) => {
    expect(checkedBase(base)).toBe(checked)
  })
})

test('every refusal is in the page of the routes, with its status', () => {
  const page = readFileSync(new URL('../../src/server/README.md', import.meta.url), 'utf8')
  for (const [code, { status }] of Object.entries(refusals)) {
    const line = page
      .split('\n')
      .find((text) => text.includes(`\`${code}\``) && /^\| \d/.test(text))
    expect([code, line?.includes(String(status))]).toEqual([code, true])
  }
})

test('every test that docs/security.md names is there', () => {
  const page = readFileSync(new URL('../../../../docs/security.md', import.meta.url), 'utf8')
  const [, table = ''] = page.split('| threat | what stands against it | test |')
  const rows = (table.split('\n\n')[0] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
  const named = rows.flatMap((row) => [...(row.split(' | ').at(-1) ?? '').matchAll(/`([\w-]+)`/g)])
  expect(rows.length).toBeGreaterThan(15)
  for (const [, name] of named) {
    const found = ['unit', 'integration'].some((kind) =>
      existsSync(new URL(`../${kind}/${name}.test.ts`, import.meta.url)),
    )
    expect([name, found]).toEqual([name, true])
  }
})

test('a long history is told in few points, and the worst are among them', () => {
  const history = new History({ minutes: 600, maxBytes: 100_000_000 })
  for (let index = 0; index < 5_000; index += 1) {
    const waiting = index === 1_234 ? [{ waitsFor: { name: 'a' }, waitingMs: 5, holds: [] }] : []
    history.add(fixedText('{}'), { at: String(index), sessions: waiting, roots: [] } as never)
  }
  const points = history.points()
  expect(points).toHaveLength(2_000)
  expect(points.find(({ waiting }) => waiting === 1)?.at).toBe('1234')
  expect(points.at(-1)?.at).toBe('4999')
})
