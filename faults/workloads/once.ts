import { withClient } from '@holdfast/testkit'
import { checkOnce, type HookEffect } from '../checks/check-once.ts'
import type { WorkloadChecks } from '../core/model.ts'
import { operationsOf } from '../history/operations-of.ts'

/** Webhooks that come several times and may have one effect. */
export const once: WorkloadChecks = {
  name: 'once',
  prepare: (url) =>
    withClient(url, async (client) => {
      await client.query('CREATE TABLE hook_effect (hook text NOT NULL, id text NOT NULL)')
    }),
  check: (url, history) =>
    withClient(url, async (client) => {
      const { rows } = await client.query<HookEffect>('SELECT hook, id FROM hook_effect')
      return checkOnce(operationsOf(history.filter(({ workload }) => workload === 'once')), rows)
    }),
}
