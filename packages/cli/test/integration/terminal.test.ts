/** `locks --watch` and `top` in a real terminal, during a real incident. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../holdfast/src/drivers/pg.ts'
import { migrate } from '../../../holdfast/src/schema/index.ts'
import { inTime } from '../../../holdfast/test/support/in-time.ts'
import {
  cast,
  type StagedIncident,
  stagedNotes,
  stagedWaits,
  stageIncident,
} from '../../../holdfast/test/support/staged-incident.ts'
import { PseudoTerminal } from '../support/pseudo-terminal.ts'
import { testDatabase } from '../../../holdfast/test/support/database.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const fromSource = new URL('../../../holdfast/test/support/from-source.ts', import.meta.url).href
const throwing = fileURLToPath(new URL('../support/throwing-screen.ts', import.meta.url))

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  await migrate(fromPg(pool))
  await pool.query("SELECT holdfast.note_locks($1, '[]')", [JSON.stringify(stagedNotes())])
  await pool.end()
})

function terminal(
  args: readonly string[],
  more: Record<string, string> = {},
  size?: [number, number],
): PseudoTerminal {
  const { NO_COLOR: _, ...environment } = process.env
  const command = [process.execPath, '--import', fromSource, main, ...args]
  return new PseudoTerminal(
    command,
    { ...environment, TERM: 'xterm-256color', DATABASE_URL: url, ...more },
    size,
  )
}

/** Which pid stands where: how deep, below whom. */
function rowsOf(
  lines: readonly string[],
  incident: StagedIncident,
): { role: string; depth: number }[] {
  return lines.flatMap((line) => {
    const role = cast.find((each) =>
      new RegExp(`(^|[─ ])${each} +${incident.pids[each]} `).test(`${line} `),
    )
    if (role === undefined) return []
    return [{ role, depth: line.indexOf(role) / 3 }]
  })
}

/** Where each has to stand: below one that it really waits for. */
function expectTruth(rows: readonly { role: string; depth: number }[]): void {
  expect(rows.map(({ role }) => role).toSorted()).toEqual(cast.toSorted())
  expect(rows[0]).toEqual({ role: 'billing', depth: 0 })
  rows.slice(1).forEach(({ role, depth }, at) => {
    const parent = rows.slice(0, at + 1).findLast((row) => row.depth === depth - 1)
    const { hard, soft } = stagedWaits[role as keyof typeof stagedWaits]
    expect([...hard, ...soft]).toContain(parent?.role)
  })
}

const restored = ['\u001B[?7h', '\u001B[?25h', '\u001B[?1049l'].join('')

/** The terminal is Python's; whoever has none can do without these tests, but not where it counts. */
const noTerminal =
  process.env['CI'] === undefined && spawnSync('python3', ['--version']).status !== 0

describe.skipIf(noTerminal)('top', () => {
  test('draws an incident within two seconds, explains it, follows the window, and leaves no trace', async () => {
    await using top = terminal(['top'])
    await top.until('the first frame', ([head]) => head?.startsWith('Nobody waits') === true)
    const incident = await stageIncident(url)
    try {
      await top.until('the whole tree', (lines) => rowsOf(lines, incident).length === 12)
      inTime(performance.now() - incident.happenedAt, 2_000)
      const seen = top.screen()
      expectTruth(rowsOf(seen, incident))
      for (const [role, { waitsFor }] of Object.entries(stagedWaits)) {
        const line = seen.find((each) => each.includes(`${role} `)) as string
        expect(line).toContain(waitsFor.slice(0, 30))
      }
      expect(seen[0]).toMatch(/^11 sessions wait, for up to /)

      top.press('\u001B[Bj\r')
      await top.until('why', (lines) => lines.join(' ').includes('checkout-2 (pid'))
      const why = top.screen().join('\n')
      expect(why).toContain('waits for nobody: it is the root, and 11 sessions wait for it.')
      expect(why).toContain(`holdfast cancel ${incident.pids.billing} --terminate --seen `)
      top.press('\u001B')
      await top.until('the list again', (lines) => rowsOf(lines, incident).length === 12)

      top.resize(60, 10)
      await top.until('fewer lines', (lines) => lines.length === 10)
      expect(top.screen().filter((line) => line.length > 60)).toEqual([])
      expect(top.screen().join('\n')).toMatch(/… \d+ more below/)
    } finally {
      await incident.end()
    }
    await top.until('calm', ([head]) => head?.startsWith('Nobody waits') === true)
    top.press('q')
    expect(await top.ended).toEqual({ code: 0, rawSeen: true, echo: true, canonical: true })
    expect(top.output).toContain('\u001B[?1049h')
    expect(top.output.endsWith(restored)).toBe(true)
  }, 60_000)

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'])('%s restores the terminal', async (signal) => {
    await using top = terminal(['top'])
    await top.until('the first frame', (lines) => lines.length > 1)
    top.signal(signal)
    expect(await top.ended).toEqual({ code: 0, rawSeen: true, echo: true, canonical: true })
    expect(top.output.endsWith(restored)).toBe(true)
  })

  test('ctrl-c is a key here, and quits', async () => {
    await using top = terminal(['top'])
    await top.until('the first frame', (lines) => lines.length > 1)
    top.press('\u0003')
    expect(await top.ended).toMatchObject({ code: 0, echo: true, canonical: true })
  })

  test('an error that nobody foresaw restores the terminal', async () => {
    await using program = new PseudoTerminal([process.execPath, throwing], process.env)
    expect(await program.ended).toEqual({ code: 1, rawSeen: true, echo: true, canonical: true })
    expect(program.output).toContain(restored)
  })

  test('a lost connection is said, and it goes on', async () => {
    await using top = terminal(['top', '--every', '0.2'])
    await top.until('the first frame', (lines) => lines.length > 1)
    const ended = await withClient(url, async (client) => {
      const { rowCount } = await client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name LIKE 'holdfast%' AND datname = current_database()`,
      )
      return rowCount
    })
    expect(ended).toBeGreaterThan(0)
    const drawn = top.output.length
    await top.until(
      'a later frame',
      (lines) => top.output.length > drawn && lines[0]?.startsWith('Nobody waits') === true,
    )
    top.press('q')
    expect(await top.ended).toMatchObject({ code: 0 })
  })

  test('without a database the screen is left alone', async () => {
    await using top = terminal(['top'], { DATABASE_URL: 'postgres://u:s3cret@127.0.0.1:1/x' })
    expect(await top.ended).toMatchObject({ code: 1, rawSeen: false })
    expect(top.output).not.toContain('\u001B[?1049h')
    expect(top.output).not.toContain('s3cret')
  })
})

test.skipIf(noTerminal)('audit writes its progress over itself', async () => {
  await using audit = terminal(['audit'])
  expect(await audit.ended).toMatchObject({ code: 0 })
  expect(audit.output.replaceAll(' ', '')).toContain('\r\u001B[2K100%:')
  expect(audit.output).toMatch(/everything adds up\.\r\n$/)
  expect(audit.output.split('\n')).toHaveLength(2)
})

describe.skipIf(noTerminal)('locks', () => {
  let incident: StagedIncident
  let earlier: StagedIncident | undefined
  afterAll(async () => await incident.end())

  test('--watch draws the same within two seconds, and ends by a signal', async () => {
    await using watch = terminal(['locks', '--watch'], { NO_COLOR: '1' }, [120, 60])
    const latest = (): string[] => (watch.output.split('\u001B[3J').at(-1) as string).split('\r\n')
    await watch.until('the first look', () => watch.output.includes('Nobody waits'))
    // Of a try that came too late.
    await earlier?.end()
    incident = await stageIncident(url)
    earlier = incident
    await watch.until('the whole tree', () => rowsOf(latest(), incident).length === 12)
    inTime(performance.now() - incident.happenedAt, 2_000)
    expectTruth(rowsOf(latest(), incident))
    for (const { waitsFor } of Object.values(stagedWaits)) {
      expect(latest().join('\n')).toContain(`for ${waitsFor}`)
    }
    expect(latest().join('\n')).toContain('holds cart:7, inventory:sku-1, order:1001')
    // oxlint-disable-next-line no-control-regex -- what colours are made of
    expect(watch.output).not.toMatch(/\u001B\[\d+m/)
    watch.signal('SIGINT')
    expect(await watch.ended).toMatchObject({ code: 0 })
  }, 60_000)

  test('in colour for a person', async () => {
    await using once = terminal(['locks'])
    expect(await once.ended).toMatchObject({ code: 0, rawSeen: false })
    expect(once.output).toContain('\u001B[1mbilling')
  })
})
