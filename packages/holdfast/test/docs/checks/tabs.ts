/**
 * What the tabs of a recipe have to do alike, whatever the client: when a row is missing, when nothing can be changed, and
 * when the same call comes again. `run-tabs.ts` does it in a process of its own.
 */
import { execFile } from 'node:child_process'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { RecipeBook } from './recipes.ts'

/** One call after the other; `throws` stands for an error, whichever the client throws. */
export interface Course {
  /** Calls the function of the recipe, and keeps its answer. */
  readonly call: (...args: readonly unknown[]) => Promise<void>
  readonly query: (sql: string) => Promise<void>
}

export interface Story {
  readonly file: string
  readonly calls: string
  /** Emptied first, and compared in the end, but for their numbered keys. */
  readonly tables: readonly string[]
  readonly courses: Readonly<
    Record<string, readonly [run: (course: Course) => Promise<void>, answers: readonly unknown[]]>
  >
}

const at = (time: string): Date => new Date(`2030-05-01T${time}:00Z`)
const event = { id: 'evt_1', purchase: '4711', amount: 30 }
const nothing = async (): Promise<void> => {}

/** By the name of the page. */
export const stories: Readonly<Record<string, Story>> = {
  wallet: {
    file: 'spend.ts',
    calls: 'spend',
    tables: ['wallet'],
    courses: {
      'no such wallet': [({ call }) => call('ann', 1), ['throws']],
      'enough for one': [
        async ({ call, query }) => {
          await query("INSERT INTO wallet VALUES ('ann', 100)")
          for (const amount of [120, 80, 80]) await call('ann', amount)
        },
        [false, true, false],
      ],
    },
  },
  transfer: {
    file: 'transfer.ts',
    calls: 'transfer',
    tables: ['wallet'],
    courses: {
      'no such payer': [
        async ({ call, query }) => {
          await query("INSERT INTO wallet VALUES ('bob', 100)")
          await call('ann', 'bob', 80)
        },
        ['throws'],
      ],
      'no such payee': [
        async ({ call, query }) => {
          await query("INSERT INTO wallet VALUES ('ann', 100)")
          await call('ann', 'bob', 80)
        },
        ['throws'],
      ],
      'enough for one, and to oneself': [
        async ({ call, query }) => {
          await query("INSERT INTO wallet VALUES ('ann', 100), ('bob', 0)")
          for (const to of ['bob', 'bob', 'ann']) await call('ann', to, to === 'ann' ? 10 : 80)
        },
        [true, false, true],
      ],
    },
  },
  stock: {
    file: 'order.ts',
    calls: 'order',
    tables: ['product'],
    courses: {
      'no such product': [({ call }) => call(['mug']), ['throws']],
      'one of two is not there': [
        async ({ call, query }) => {
          await query("INSERT INTO product VALUES ('mug', 1)")
          await call(['mug', 'tee'])
        },
        ['throws'],
      ],
      'the last one, and again': [
        async ({ call, query }) => {
          await query("INSERT INTO product VALUES ('mug', 1), ('tee', 2)")
          await call(['mug', 'tee'])
          await call(['mug', 'tee'])
        },
        [true, false],
      ],
    },
  },
  booking: {
    file: 'book.ts',
    calls: 'book',
    tables: ['booking'],
    courses: {
      'twice, and too soon after': [
        async ({ call }) => {
          await call('blue', at('09:00'), at('11:00'))
          await call('blue', at('09:00'), at('11:00'))
          await call('blue', at('11:05'), at('12:00'))
          await call('red', at('11:05'), at('12:00'))
        },
        [true, false, false, true],
      ],
    },
  },
  cron: {
    file: 'close-month.ts',
    calls: 'closeMonth',
    tables: ['statement', 'holdfast.schedule', 'holdfast.tick'],
    courses: {
      'twice, and another month': [
        async ({ call }) => {
          for (const month of ['2026-01', '2026-01', '2026-02']) await call(month)
        },
        [undefined, undefined, undefined],
      ],
    },
  },
  webhooks: {
    file: 'receive.ts',
    calls: 'receive',
    tables: ['purchase', 'holdfast.once'],
    courses: {
      'before the purchase is stored, and again': [
        async ({ call, query }) => {
          await call(event)
          await query("INSERT INTO purchase VALUES ('4711', 0)")
          await call(event)
          await call(event)
        },
        ['throws', undefined, undefined],
      ],
    },
  },
  stuck: {
    file: 'import-shop.ts',
    calls: 'importShop',
    tables: ['shop_import'],
    courses: {
      'no such shop, and then twice': [
        async ({ call, query }) => {
          await call('north')
          await query("INSERT INTO shop_import VALUES ('north', false, 0)")
          await call('north')
          await call('north')
        },
        ['throws', true, true],
      ],
    },
  },
  coupons: {
    file: 'redeem.ts',
    calls: 'redeem',
    tables: ['coupon', 'redemption'],
    courses: {
      'no such code': [({ call }) => call('SPRING', 'ann'), ['throws']],
      'twice, and no more left': [
        async ({ call, query }) => {
          await query("INSERT INTO coupon VALUES ('SPRING', 2, 0)")
          for (const user of ['ann', 'ann', 'bob', 'eve']) await call('SPRING', user)
        },
        [true, false, true, false],
      ],
    },
  },
  usernames: {
    file: 'register.ts',
    calls: 'register',
    tables: ['member'],
    courses: {
      'again, and alike': [
        async ({ call }) => {
          for (const name of ['ann-lee', 'ann-lee', 'AnnLee', 'bob']) await call(name)
        },
        [true, false, false, true],
      ],
    },
  },
  'upload-quota': {
    file: 'upload.ts',
    calls: 'upload',
    tables: ['upload'],
    courses: {
      'none yet, too much, and the rest': [
        async ({ call }) => {
          for (const bytes of [10_000_001, 9_000_000, 2_000_000, 1_000_000])
            await call('ann', bytes)
        },
        [false, true, false, true],
      ],
    },
  },
  'tenant-limits': {
    file: 'create-project.ts',
    calls: 'createProject',
    tables: ['tenant', 'project'],
    courses: {
      'no such tenant': [({ call }) => call('acme', 'blue'), ['throws']],
      'one more than the plan': [
        async ({ call, query }) => {
          await query("INSERT INTO tenant VALUES ('acme', 1)")
          await call('acme', 'blue')
          await call('acme', 'blue')
        },
        [true, false],
      ],
    },
  },
  deploy: {
    file: 'deploy.ts',
    calls: 'deploy',
    tables: ['deploy'],
    courses: {
      'one that fails, and one that does not': [
        async ({ call }) => {
          await call('staging', 'v1', () => Promise.reject(new Error('no disk')))
          await call('staging', 'v2', nothing)
        },
        ['throws', true],
      ],
    },
  },
}

/** What one tab did: for each course its answers, and what is in the tables then. */
export type Told = Readonly<
  Record<string, { readonly answers: readonly unknown[]; readonly rows: string }>
>

interface Tab {
  readonly client: string
  readonly folder: string
}

/** The folders in which each client is at work: the last version before the first other client has Prisma's. */
export function tabsOf({ versions }: Pick<RecipeBook, 'versions'>, name: string): Tab[] {
  const ofPage = versions.filter(({ page }) => basename(page, '.md') === name)
  const first = ofPage.findIndex(({ client }) => client !== undefined)
  return ofPage
    .slice(Math.max(first - 1, 0))
    .map(({ client, folder }) => ({ client: client ?? 'prisma', folder }))
}

const fromSource = new URL('../../support/from-source.ts', import.meta.url).href
const program = fileURLToPath(new URL('run-tabs.ts', import.meta.url))

/** Runs the courses of a page with each of these tabs, in one process. */
export async function runTabs(
  name: string,
  tabs: readonly Tab[],
  databaseUrl: string,
): Promise<Readonly<Record<string, Told>>> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', fromSource, program, name, JSON.stringify(tabs)],
    { env: { ...env, DATABASE_URL: databaseUrl }, timeout: 90_000, killSignal: 'SIGKILL' },
  )
  return JSON.parse(stdout) as Record<string, Told>
}
