/** The picture of the documentation is that of a real run. `vitest -u` draws it again. */
import { withClient } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { quotaRace, tables } from '../../src/demo/quota.ts'
import { explore } from '../../src/explore.ts'
import { pictureFile } from '../support/picture-file.ts'

test('docs/race/quota.svg', async () => {
  const { directUrl: url } = await testDatabase()
  await withClient(url, (client) => client.query(tables))
  const report = await explore(quotaRace(url, 'public', false))
  await expect(pictureFile(report)).toMatchFileSnapshot('../../../../docs/race/quota.svg')
})
