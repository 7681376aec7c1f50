import { HolderProcess } from './holder-process.ts'

const ttlMs = 2_000

/**
 * How long nobody leads after a leader resigned, or was killed. Three processes; the one that leads
 * leaves, and the time is taken until another one says that it leads.
 */
export async function handOvers(
  url: string,
  times: number,
  ways: readonly ('by lease' | 'by session')[],
  progress: (text: string) => void,
): Promise<string[]> {
  const notes: string[] = []
  for (const way of ways) {
    const bySession = way === 'by session'
    for (const killed of [false, true]) {
      const took: number[] = []
      for (let time = 0; time < times; time += 1) {
        const name = `leader-${String(bySession)}-${String(killed)}-${time}`
        took.push(await handOver(url, name, bySession, killed))
      }
      const sorted = took.toSorted((a, b) => a - b)
      const note =
        `hand-over ${way}, leader ${killed ? 'killed' : 'resigns'}: ` +
        `${Math.round(sorted[Math.floor(times / 2)] ?? 0)} ms in the middle, ` +
        `${Math.round(sorted.at(-1) ?? 0)} ms at most (ttl ${ttlMs} ms, ${times} times)`
      notes.push(note)
      progress(note)
    }
  }
  return notes
}

async function handOver(
  url: string,
  name: string,
  bySession: boolean,
  killed: boolean,
): Promise<number> {
  await using first = await HolderProcess.start(url)
  await using second = await HolderProcess.start(url)
  const task = { kind: 'lead', name, ttlMs, bySession } as const
  first.send(task)
  await first.hears('has')
  second.send(task)
  // Somewhere between two renewals.
  await new Promise((resolve) => {
    setTimeout(resolve, Math.random() * ttlMs)
  })
  const since = performance.now()
  if (killed) await first.kill()
  else first.send('enough')
  await second.hears('has')
  return performance.now() - since
}
