import { setTimeout as pause } from 'node:timers/promises'
import { ask } from '../cluster/ask.ts'
import type { Commits } from '../cluster/conversation.ts'
import type { CutMoment, CuttablePort } from '../cluster/cuttable-port.ts'
import { last, type OwnFault, type Stage } from './own-fault.ts'

const moments: readonly CutMoment[] = ['before', 'after', 'answered']

function somePort({ cluster, random }: Stage): CuttablePort {
  return cluster.ports[random.integer(0, cluster.ports.length - 1)] as CuttablePort
}

function cutAt(name: string, aim: Commits): OwnFault {
  return {
    name,
    async strike(stage) {
      const port = somePort(stage)
      const moment = moments[stage.random.integer(0, moments.length - 1)] ?? 'after'
      const count = stage.random.integer(1, 6)
      const cut = await port.cutCommits({ aim, moment, count, limitMs: 1_500 })
      stage.say(`${moment}, at ${port.name}: ${cut} of ${count}`)
      if (cut === 0) throw new Error('nobody committed there')
    },
  }
}

/** Signals to many backends, one after the other: `pg_cancel_backend` or `pg_terminate_backend`. */
function storm(name: string, call: string): OwnFault {
  return {
    name,
    async strike({ cluster, database, random, say }) {
      const gusts = random.integer(5, 25)
      const everyMs = random.integer(10, 60)
      let hit = 0
      await ask(cluster.adminUrl('postgres'), async (client) => {
        for (let gust = 0; gust < gusts; gust += 1) {
          const { rowCount } = await client.query(
            `SELECT ${call}(pid) FROM pg_stat_activity WHERE datname = $1
             AND backend_type = 'client backend' AND state <> 'idle' ORDER BY random() LIMIT 3`,
            [database],
          )
          hit += rowCount ?? 0
          await pause(everyMs)
        }
      })
      say(`${hit} times`)
    },
  }
}

export const connectionFaults: readonly OwnFault[] = [
  cutAt('cut_commit', 'commit'),
  cutAt('cut_autocommit', 'autocommit'),
  {
    name: 'cut_all',
    async strike(stage) {
      const port = somePort(stage)
      stage.say(`${port.cutAll()} at ${port.name}`)
    },
  },
  {
    // Nobody is told that nothing arrives.
    name: 'stall_network',
    async strike(stage) {
      const port = somePort(stage)
      port.stall()
      stage.say(port.name)
      try {
        await last(stage, 100, 1_500)
      } finally {
        port.restore()
      }
    },
  },
  storm('terminate_storm', 'pg_terminate_backend'),
  storm('cancel_storm', 'pg_cancel_backend'),
]
