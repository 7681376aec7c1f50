import { inTurn, withClient } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import type { Report } from '../../../src/index.ts'
import type { ArticleName, Version } from './article-code.ts'
import { everyClient } from './every-client.ts'
import { createTables, seeds } from './tables.ts'
import { inTime } from '../../../../holdfast/test/support/in-time.ts'

let url: string

beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, async (client) => await client.query(createTables))
})

async function exploreArticle(
  client: string,
  article: ArticleName,
  version: Version,
): Promise<Report> {
  const open = everyClient[client]
  if (open === undefined) throw new Error(`no client ${client}`)
  const request = async (reach: { url: string; pool: Pool }, who: string): Promise<string> => {
    await using opened = await open(reach)
    return await opened.run[article](version, who)
  }
  return await explore({
    name: `${article}, ${version}, ${client}`,
    url,
    seed: ({ query }) => query(seeds[article]),
    flows: { one: (reach) => request(reach, 'one'), two: (reach) => request(reach, 'two') },
  })
}

const articles: readonly ArticleName[] = ['quota', 'upload', 'stock', 'webhook', 'job']

// A brief run tries every client and every article, and not each with each.
describe.each(inTurn(Object.keys(everyClient), articles))('on %s', (client, own) => {
  test.each(own)('%s, naive: found without an invariant', async (article) => {
    const { verdict, coverage, failure } = await exploreArticle(client, article, 'naive')
    inTime(coverage.milliseconds, 5_000)
    expect(verdict).toBe('race')
    expect(failure?.kind).toBe('not-serial')
    expect(coverage.schedules).toBeLessThanOrEqual(20)
  })

  test.each(own)('%s, fixed: every order is run and all is well', async (article) => {
    const { verdict, coverage } = await exploreArticle(client, article, 'fixed')
    expect(verdict).toBe('race-free')
    expect(coverage).toMatchObject({ exhaustive: true, overlapped: true })
  })
})
