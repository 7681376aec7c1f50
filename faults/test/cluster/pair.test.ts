import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startPair } from '../../cluster/pair.ts'
import { openSpares } from '../../crew/spares.ts'
import { pairFaults } from '../../nemesis/index.ts'
import { planInTurn } from '../../nemesis/plan.ts'
import { runEpisode } from '../../run/episode.ts'

test('three failovers under load lose nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-failovers-'))
  try {
    await using cluster = await startPair()
    await using spares = openSpares(1)
    const before = cluster.primary.port
    const plan = planInTurn(1, pairFaults, 3)
    const { result } = await runEpisode({ cluster, spares, number: 1, plan, folder })
    expect(result.violations).toEqual([])
    expect(result.faults).toHaveLength(3)
    expect(cluster.primary.port).not.toBe(before)
  } finally {
    await rm(folder, { recursive: true })
  }
}, 120_000)
