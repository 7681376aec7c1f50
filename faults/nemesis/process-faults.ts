import { spawn } from 'node:child_process'
import { sendSignal } from '@holdfast/testkit'
import { last, type OwnFault, type Stage, someBackend } from './own-fault.ts'

/** Longer than any of them stands still. */
const reviveSeconds = 5

async function standStill(pid: number, stage: Stage): Promise<void> {
  // If the run is killed meanwhile, somebody has to wake them, or they never notice.
  const reviver = `sleep ${reviveSeconds}; kill -CONT ${pid}`
  spawn('sh', ['-c', reviver], { detached: true, stdio: 'ignore' }).unref()
  sendSignal(pid, 'SIGSTOP')
  stage.say(`process ${pid}`)
  try {
    await last(stage, 100, 1_500)
  } finally {
    sendSignal(pid, 'SIGCONT')
  }
}

export const processFaults: readonly OwnFault[] = [
  {
    name: 'kill_application',
    async strike({ crew, random }) {
      await crew.killOne(random.integer(0, crew.pids.length - 1))
    },
  },
  {
    name: 'stop_application',
    async strike(stage) {
      const { crew, random } = stage
      await standStill(crew.pids[random.integer(0, crew.pids.length - 1)] as number, stage)
    },
  },
  {
    // The postmaster cannot know what its memory looks like now, and ends all other backends too.
    name: 'kill_backend',
    async strike(stage) {
      const pid = await someBackend(stage)
      sendSignal(pid, 'SIGKILL')
      stage.say(`process ${pid}`)
      await stage.cluster.mend()
    },
  },
  {
    name: 'stop_backend',
    async strike(stage) {
      await standStill(await someBackend(stage), stage)
    },
  },
  {
    // Its children go on with what they do until they notice.
    name: 'kill_postmaster',
    async strike(stage) {
      sendSignal(stage.cluster.primary.pid, 'SIGKILL')
      await last(stage, 0, 300)
      await stage.cluster.mend()
    },
  },
  {
    name: 'kill_server',
    async strike(stage) {
      await stage.cluster.primary.kill()
      await last(stage, 0, 500)
      await stage.cluster.mend()
    },
  },
  {
    name: 'stop_postmaster',
    async strike(stage) {
      await standStill(stage.cluster.primary.pid, stage)
    },
  },
  {
    name: 'restart_fast',
    async strike({ cluster }) {
      await cluster.primary.shutDown('fast')
      await cluster.mend()
    },
  },
  {
    name: 'restart_immediate',
    async strike({ cluster }) {
      await cluster.primary.shutDown('immediate')
      await cluster.mend()
    },
  },
  {
    name: 'kill_pgbouncer',
    async strike(stage) {
      await stage.cluster.pooler.kill()
      await last(stage, 0, 500)
      await stage.cluster.mend()
    },
  },
  {
    name: 'stop_pgbouncer',
    async strike(stage) {
      await standStill(stage.cluster.pooler.pid, stage)
    },
  },
]
