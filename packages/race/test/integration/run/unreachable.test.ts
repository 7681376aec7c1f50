/** A database that cannot be used is told with what to do, and never with its address. */
import { createServer } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'

const refusal = async (url: string): Promise<string> => {
  const flows = { a: async () => 1, b: async () => 2 }
  try {
    await explore({ url, flows, onProgress: () => undefined })
  } catch (error) {
    if (error instanceof Error) return error.message
  }
  return ''
}

test('nobody listens there', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  const message = await refusal(`postgres://ann:secret@127.0.0.1:${port}/test`)
  expect(message).toMatch(
    /^The database cannot be reached: .*ECONNREFUSED.*Check host and port of the database URL, and that the server is running\.$/,
  )
  expect(message).not.toContain('secret')
})

test('there is no such database', async () => {
  const { directUrl } = await testDatabase()
  const message = await refusal(directUrl.replace(/\/[^/?]+(\?|$)/, '/no_such_database$1'))
  expect(message).toContain('Create the database, or correct its name in the database URL.')
})
