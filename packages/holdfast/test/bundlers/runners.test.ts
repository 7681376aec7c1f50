/** The packed library where others load it for themselves: test runners, ts-node, NestJS. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  firstHour,
  firstHourMain,
  installedProject,
  type PackedProject,
} from '../support/packed-project.ts'
import { emptyDatabase, everything, onEmptyDatabase } from './on-empty-database.ts'

let project: PackedProject

beforeAll(async () => {
  project = await installedProject([
    'pg@8',
    '@types/pg@8',
    '@types/node@24',
    'jest@30',
    '@types/jest@30',
    'ts-jest@29',
    'vitest@4',
    'ts-node@10',
    'typescript@5.9',
    '@nestjs/common@11',
    '@nestjs/core@11',
    'reflect-metadata@0.2',
    'rxjs@7',
  ])
  await project.write({
    'first-hour.mjs': firstHour,
    'main.mjs': firstHourMain,
    // What `tsc` and Babel make of it.
    'src/first-hour.ts': `// @ts-nocheck\n${firstHour}`,
    'tsconfig.json': JSON.stringify({
      compilerOptions: {
        module: 'commonjs',
        moduleResolution: 'node10',
        target: 'es2023',
        strict: true,
        esModuleInterop: true,
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        types: ['node', 'jest'],
        outDir: 'out',
      },
      include: ['src'],
    }),
  })
}, 600_000)

afterAll(async () => {
  await project[Symbol.asyncDispose]()
})

test('U5: Jest 30 without any flag or transformer', { timeout: 300_000 }, async () => {
  await project.write({
    'plain.test.js': `
      const { createHoldfast, lockKey } = require('holdfast')
      const { fromPg } = require('holdfast/drivers/pg')
      const { migrate } = require('holdfast/schema')
      const pg = require('pg')
      test('guards', async () => {
        const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
        const driver = fromPg(pool)
        expect((await migrate(driver)).applied.length).toBeGreaterThan(150)
        const hf = createHoldfast(driver)
        expect(await hf.guard(lockKey('jest', 'a'), async () => 7)).toBe(7)
        await hf.close()
        await pool.end()
      })`,
  })
  const args = ['jest', '--rootDir', '.', '--testMatch', '**/plain.test.js']
  const env = { DATABASE_URL: await emptyDatabase() }
  await expect(project.run('npx', args, env)).resolves.toBeDefined()
})

test('U5: Jest 30 with ts-jest', { timeout: 300_000 }, async () => {
  await project.write({
    'src/typed.test.ts': `
      import { firstHour } from './first-hour'
      test('all of it', async () => {
        const seen = await firstHour(process.env['DATABASE_URL'])
        expect(seen).toMatchObject({ again: 0, most: 1, spent: true })
      })`,
  })
  const args = ['jest', '--preset', 'ts-jest', '--testMatch', '**/typed.test.ts']
  const env = { DATABASE_URL: await emptyDatabase() }
  await expect(project.run('npx', args, env)).resolves.toBeDefined()
})

test('Vitest', { timeout: 300_000 }, async () => {
  await project.write({
    'own.spec.mjs': `
      import { expect, test, vi } from 'vitest'
      test('all of it, twice', async () => {
        const { firstHour } = await import('./first-hour.mjs')
        expect(await firstHour(process.env.DATABASE_URL)).toMatchObject({ most: 1, spent: true })
        vi.resetModules()
        const again = await import('./first-hour.mjs')
        expect(await again.firstHour(process.env.DATABASE_URL)).toMatchObject({ most: 1, spent: true })
      })`,
  })
  const env = { DATABASE_URL: await emptyDatabase() }
  await expect(project.run('npx', ['vitest', 'run', 'own.spec.mjs'], env)).resolves.toMatch(
    /1 passed/,
  )
})

test('U5: ts-node', { timeout: 300_000 }, async () => {
  await project.write({
    'src/main.ts': `
      import { firstHour } from './first-hour'
      firstHour(process.env['DATABASE_URL']).then((seen: unknown) => console.log(JSON.stringify(seen)))`,
  })
  expect(await onEmptyDatabase(project, 'npx', ['ts-node', 'src/main.ts'])).toEqual(everything)
})

test('U5: a project as `nest new` makes them', { timeout: 300_000 }, async () => {
  await project.write({
    'src/app.ts': `
      import 'reflect-metadata'
      import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common'
      import { NestFactory } from '@nestjs/core'
      import { createHoldfast, type Holdfast, lockKey } from 'holdfast'
      import { fromPg } from 'holdfast/drivers/pg'
      import { type Credits, createCredits } from 'holdfast/credits'
      import { migrate } from 'holdfast/schema'
      import { Pool, type PoolClient } from 'pg'
      import { firstHour } from './first-hour'

      @Injectable()
      class Locks implements OnModuleDestroy {
        private readonly pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
        readonly hf: Holdfast<PoolClient> = createHoldfast(fromPg(this.pool))
        async onModuleDestroy(): Promise<void> {
          await this.hf.close()
          await this.pool.end()
        }
      }
      @Injectable()
      class Orders {
        constructor(private readonly locks: Locks) {}
        place(user: string): Promise<number> {
          return this.locks.hf.guard(lockKey('order', user), async (tx) => {
            const { rows } = await tx.query('SELECT 7 AS n')
            return rows[0].n
          })
        }
      }
      @Module({ providers: [Locks, Orders] })
      class AppModule {}
      export type Unused = Credits<PoolClient, number> | typeof createCredits | typeof migrate

      async function main(): Promise<void> {
        const seen = await firstHour(process.env['DATABASE_URL'])
        const app = await NestFactory.createApplicationContext(AppModule, { logger: false })
        if ((await app.get(Orders).place('ann')) !== 7) throw new Error('no answer')
        await app.close()
        console.log(JSON.stringify(seen))
      }
      void main()`,
  })
  for (const kind of ['node10', 'nodenext']) {
    const how = kind === 'node10' ? [] : ['--module', 'nodenext', '--moduleResolution', 'nodenext']
    await project.run('npx', ['tsc', '-p', '.', '--skipLibCheck', ...how])
    expect(await onEmptyDatabase(project, 'node', ['out/app.js'])).toEqual(everything)
  }
})
