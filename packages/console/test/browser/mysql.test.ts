/** The console on MariaDB in a browser: an incident by name, its end, and pages that this engine has not. */
import { deferred } from '@holdfast/testkit'
import { fromMysql2 } from 'holdfast/drivers/mysql2'
import { createPool, type Pool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  eachOwnServer,
  type OwnServer,
} from '../../../holdfast/test/engines/innodb/observe/own-server.ts'
import { createHoldfast, lockKey, migrate } from '../../../holdfast/src/mysql.ts'
import type { InnodbSession } from '../../../holdfast/test/server-behaviour/innodb/support/innodb-session.ts'
import { type ListeningConsole, listen } from '../../src/node/listen.ts'
import { assembleConsole } from '../../src/server/create-console.ts'
import { allActions } from '../../src/server/actions.ts'
import {
  chromiumProgram,
  type ConsoleBrowser,
  startBrowser,
  type WatchedPage,
} from '../support/console-browser.ts'
import { logIn, settled, wider } from '../support/console-visitor.ts'
import { auth, tokens } from '../support/started-console.ts'

const windows = {
  phone: { width: 390, height: 844 },
  desktop: { width: 1200, height: 900 },
} as const

const attack = '<img src=x onerror=globalThis.ran=1>'
/** What would have to be there if it had become more than text. */
const traces = `({
  ran: globalThis.ran,
  elements: document.querySelectorAll('img, iframe, script:not([src]), [onerror]').length,
})`
const harmless = { elements: 0 }

const readList = `[...document.querySelectorAll('.blocking-list li')].map((item) => ({
  pid: Number(item.dataset.pid),
  parent: item.parentElement.closest('li') ? Number(item.parentElement.closest('li').dataset.pid) : 0,
  text: item.querySelector('.row').innerText.replace(/\\s+/g, ' '),
}))`

interface Shown {
  readonly pid: number
  readonly parent: number
  readonly text: string
}

/** Who is in the tree: the root holds cart:7 and a row, and the others wait for it, one of them behind another one. */
interface Staged {
  readonly root: number
  readonly checkout: InnodbSession
  readonly clerk: InnodbSession
  readonly porter: InnodbSession
  /** Lets the root commit, unless it was ended. */
  end(): Promise<void>
}

async function stage(place: OwnServer): Promise<Staged> {
  const [held, mayEnd] = [deferred<number>(), deferred()]
  const [checkout, clerk, porter] = [await place.open(), await place.open(), await place.open()]
  const hf = createHoldfast(place.driver())
  const first = hf
    .guard(
      lockKey('cart', 7),
      async (tx) => {
        const { query } = tx as { query(text: string): Promise<[{ id: number }[]]> }
        await query.call(tx, `UPDATE orders SET v = 1 WHERE id = 1 -- ${attack}`)
        const [rows] = await query.call(tx, 'SELECT CONNECTION_ID() AS id')
        held.resolve(Number(rows[0]?.id))
        await mayEnd.promise
      },
      { retry: false },
    )
    .catch(() => undefined)
  const root = await held.promise
  // What a guard of another process sends, without its limit.
  const row = (await porter.value(
    "SELECT name FROM holdfast_lock WHERE name LIKE 'cart:7#%'",
  )) as string
  await checkout.rows('BEGIN')
  const waits = [checkout.rows('SELECT seq FROM holdfast_lock WHERE name = ? FOR UPDATE', [row])]
  await clerk.all('BEGIN', `UPDATE \`${attack}\` SET v = 1 WHERE id = 1`)
  waits.push(clerk.rows('UPDATE orders SET v = 2 WHERE id = 1'))
  waits.push(porter.rows(`UPDATE \`${attack}\` SET v = 2 WHERE id = 1`))
  const all = Promise.allSettled(waits)
  return {
    root,
    checkout,
    clerk,
    porter,
    async end() {
      mayEnd.resolve()
      await first
      await clerk.rows('ROLLBACK').catch(() => undefined)
      await all
    },
  }
}

describe.skipIf(chromiumProgram === undefined)('on', () => {
  eachOwnServer((place) => {
    let browser: ConsoleBrowser
    let server: ListeningConsole
    let origin = ''
    let looking: Pool
    let opened: WatchedPage[] = []
    beforeAll(async () => {
      browser = await startBrowser()
      const connectAttributes = { program_name: 'console' }
      looking = createPool({ uri: place.url(), connectionLimit: 3, connectAttributes })
      const driver = fromMysql2(looking)
      await migrate(driver)
      // So that its row is there for everybody. The console has never heard of it.
      await createHoldfast(place.driver()).guard(lockKey('cart', 7), async () => undefined)
      const session = await place.open()
      await session.all(
        'CREATE TABLE orders (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
        'INSERT INTO orders VALUES (1, 0)',
        `CREATE TABLE \`${attack}\` (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB`,
        `INSERT INTO \`${attack}\` VALUES (1, 0)`,
        'SET GLOBAL innodb_lock_wait_timeout = 600',
      )
      const database = { driver, ownApplication: 'console' }
      const options = { databases: { shop: database }, auth, actions: allActions }
      const assembled = assembleConsole({ ...options, audit: () => undefined }, {})
      server = await listen(assembled, { port: 0, host: '127.0.0.1' })
      origin = `http://127.0.0.1:${server.port}`
    })
    afterAll(async () => {
      await browser.close()
      await server.close()
      await looking.end()
    })

    const visit = async (
      token: string,
      size: keyof typeof windows = 'desktop',
    ): Promise<WatchedPage> => {
      const one = await browser.open({ viewport: windows[size] })
      opened.push(one)
      await logIn(one, origin, token)
      one.complaints.length = 0
      return one
    }
    const closeAll = async (): Promise<void> => {
      const open = opened
      opened = []
      for (const { page } of open) await page.context().close()
    }
    const item = (pid: number): string => `.blocking-list li[data-pid="${pid}"]`

    test('who blocks whom is drawn by name, and ended by who may', async () => {
      const one = await visit(tokens.operate)
      const { page } = one
      await settled(one)
      await page.waitForSelector('.quiet')
      expect(await page.locator('nav[aria-label=Pages] a').allInnerTexts()).toEqual([
        'Now',
        'Doctor',
      ])
      const staged = await stage(place)
      const { root, checkout, clerk, porter } = staged
      for (const { id } of [checkout, clerk, porter])
        await page.waitForSelector(item(id), { state: 'attached' })
      const list = (await page.evaluate(readList)) as Shown[]
      expect(new Map(list.map(({ pid, parent }) => [pid, parent]))).toEqual(
        new Map([
          [root, 0],
          [checkout.id, root],
          [clerk.id, root],
          [porter.id, clerk.id],
        ]),
      )
      const textOf = (pid: number): string => list.find((each) => each.pid === pid)?.text ?? ''
      expect(textOf(checkout.id)).toMatch(/for cart:7/)
      expect(textOf(clerk.id)).toMatch(/for row of \S+\.orders/)
      expect(textOf(porter.id)).toContain(attack)
      expect(await page.evaluate(traces)).toEqual(harmless)
      expect(await page.textContent('main')).not.toMatch(/Vacuum|pg_/)

      await page.goto(`${origin}/now?lock=cart:7`)
      await page.waitForSelector('aside[aria-label="Lock cart:7"]')
      const lock = await page.innerText('aside.panel')
      expect(lock).toContain(`pid ${root}`)
      expect(lock).toContain('the row of the lock')
      expect(lock).not.toContain('pg_locks')
      await page.goto(`${origin}/now?pid=${porter.id}`)
      await page.waitForSelector('aside.panel h3:has-text("End it")')
      expect(await page.innerText('aside.panel')).toMatch(/exclusive, .*PRIMARY: 1/)
      expect(await page.evaluate(traces)).toEqual(harmless)

      // Cancelling ends the statement and not the transaction, and the question says so.
      await page.click('text=Cancel the statement…')
      await page.waitForSelector('dialog[open]')
      expect(await page.innerText('dialog')).toContain('its transaction stays open')
      await page.click('dialog button:has-text("Cancel the statement")')
      await page.waitForSelector(item(porter.id), { state: 'detached' })

      await page.goto(`${origin}/now?pid=${root}`)
      await page.waitForSelector('aside.panel h3:has-text("End it")')
      await page.click('text=End the session…')
      await page.click('dialog button:has-text("End the session")')
      await page.waitForSelector('.quiet')
      // The panel has asked for a session that is gone.
      expect(one.complaints.filter((text) => !text.includes('404'))).toEqual([])
      await staged.end()
      await closeAll()
    })

    test('whoever may only look is offered nothing else', async () => {
      const staged = await stage(place)
      const { page } = await visit(tokens.view)
      await page.goto(`${origin}/now?pid=${staged.root}`)
      await page.waitForSelector('aside.panel')
      expect(await page.innerText('aside.panel')).toContain('You may look and not end sessions')
      expect(await page.locator('aside.panel .button-danger').count()).toBe(0)
      await staged.end()
      await closeAll()
    })

    test.each(['phone', 'desktop'] as const)(
      'every page is sound on a %s, in both themes, also those that this engine has not',
      async (size) => {
        const staged = await stage(place)
        const one = await visit(tokens.operate, size)
        const { page, complaints } = one
        const faults = async (name: string): Promise<string[]> => {
          const found: string[] = []
          for (const colorScheme of ['light', 'dark'] as const) {
            await page.emulateMedia({ colorScheme })
            await one.screenshot(`innodb-${name}-${size}-${colorScheme}`)
            found.push(...(await one.violations()))
          }
          const over = await wider(one)
          if (over > 0) found.push(`wider than the window by ${over}`)
          return [...found, ...complaints.splice(0)]
        }
        await page.waitForSelector(item(staged.porter.id), { state: 'attached' })
        const offered: Readonly<Record<string, string>> = {
          now: 'now',
          'now-other': size === 'phone' ? 'now?view=graph' : 'now?view=list',
          session: `now?pid=${staged.root}`,
          lock: 'now?lock=cart:7',
          doctor: 'doctor',
        }
        const absent = {
          ledger: 'ledger?book=credits',
          locks: '',
          claims: '',
          jobs: '',
          schedules: '',
        }
        for (const [name, path] of Object.entries({ ...offered, ...absent })) {
          await page.goto(`${origin}/${path || name}`)
          await settled(one)
          const text = await page.innerText('main')
          expect([name, text.includes('This page is for PostgreSQL')]).toEqual([
            name,
            name in absent,
          ])
          expect([name, await page.locator('.notice-bad, .banner').count()]).toEqual([name, 0])
          // Those that are absent look alike.
          if (path === '') expect([name, complaints]).toEqual([name, []])
          else expect({ [name]: await faults(name) }).toEqual({ [name]: [] })
        }
        await staged.end()
        await closeAll()
      },
      90_000,
    )
  })
})
