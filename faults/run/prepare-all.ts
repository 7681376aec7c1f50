import { installLedger } from '../../bench/ledger/open-ledger.ts'
import { allWorkloads } from '../workloads/index.ts'

/** Holdfast's schema, and the tables and balances of every workload. */
export async function prepareAll(adminUrl: string): Promise<void> {
  await installLedger(adminUrl)
  for (const { prepare } of allWorkloads) await prepare(adminUrl)
}
