/** A process that claims rows and holds on to them until it is killed; see worker.test.ts. */
import { createPool } from 'mysql2/promise'
import { fromMysql2 } from '../../../../src/drivers/mysql2.ts'
import { createHoldfast } from '../../../../src/mysql.ts'

const [url = '', table = '', lease = ''] = process.argv.slice(2)
const hf = createHoldfast(fromMysql2(createPool({ uri: url })))
const jobs = hf.claims({ table, columns: { attempts: 'attempts' }, lease: Number(lease) })
let begun = 0
await jobs.run({
  concurrency: 3,
  transactionHandler: async () => {
    begun += 1
    if (begun === 3) process.send?.('working')
    await Promise.withResolvers<void>().promise
  },
})
