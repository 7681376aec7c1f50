/** `outcome` is code of the user's: whatever it does, explore() comes to an end that its caller hears of. */
import { withClient } from '@holdfast/testkit'
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) => client.query('CREATE TABLE seat (id int PRIMARY KEY)'))
})

const take: Flow = async ({ pool }) => {
  await pool.query('INSERT INTO seat VALUES (1)')
  return { status: 201 }
}

type Outcome = NonNullable<ExploreOptions['outcome']>

const told = async (outcome: Outcome): Promise<unknown> =>
  await explore({
    url,
    seed: ({ query }) => query('TRUNCATE seat'),
    flows: { ann: take, bob: take },
    outcome,
    onProgress: () => undefined,
  }).catch((error: unknown) => error)

test.each(['answer', 'error'])(
  'an outcome that throws for an %s rejects explore()',
  async (end) => {
    const reason = new TypeError('status of undefined')
    const error = await told((given) => {
      if (end in given) throw reason
      return undefined
    })
    expect(error).toMatchObject({ cause: reason })
    expect(String(error)).toMatch(
      end === 'answer'
        ? /outcome\(\) threw for what ann returned: status of undefined/
        : /outcome\(\) threw for what bob threw: status of undefined/,
    )
  },
)

test('an outcome that says none of the three words is told which there are', async () => {
  const error = await told((() => 'ok') as unknown as Outcome)
  expect(error).toMatchObject({ code: 'OPTION_INVALID' })
  expect(String(error)).toMatch(
    /outcome\(\) must return 'accepted', 'refused', 'failed' or undefined; for what ann returned it gave 'ok'/,
  )
})
