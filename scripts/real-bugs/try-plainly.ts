import { withClient } from '@holdfast/testkit'
import { Pool } from 'pg'
import type { Scene } from './real-bug.ts'

/** The same flow twice by `Promise.all`, again and again; gives how often it went wrong. */
export async function tryPlainly(url: string, scene: Scene, trials: number): Promise<number> {
  const pool = new Pool({ connectionString: url })
  const { signal } = new AbortController()
  let wrong = 0
  await withClient(url, async (control) => {
    for (let trial = 0; trial < trials; trial += 1) {
      await control.query(scene.seed)
      const ended = await Promise.allSettled(
        ['one', 'two'].map((flow) =>
          scene.flow({ flow, url, pool, traceparent: '', signal, step: async () => {} }),
        ),
      )
      const { rows } = await control.query<{ holds: boolean }>(scene.check)
      const answers = ended.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
      const fit = answers.length === ended.length && (scene.fit?.(answers) ?? true)
      if (!fit || rows[0]?.holds !== true) wrong += 1
    }
  })
  await pool.end()
  return wrong
}
