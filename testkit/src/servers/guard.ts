import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command, GuardianPlan, Reply, Request } from './guardian.ts'
import type { ServiceAccount } from './service-account.ts'

/** Our end of a guardian process: a folder of our own and at most one server in it. */
export interface Guard {
  readonly folder: string
  /** What the programs wrote. */
  readonly logFile: string
  /** Whether the folder `data` is a file system of its own, as was asked for. */
  readonly inMemory: boolean
  /** Runs a program to its end, e.g. `initdb`. Rejects with its output if it fails. */
  run(command: Command): Promise<void>
  /** Starts the server. Being started does not mean being ready. */
  serve(command: Command): Promise<void>
  /** Of the server that was started last. */
  pid(): number
  /** What the server wrote, if it ended without being asked to. */
  ended(): string | undefined
  /** Stops the server, removes the folder, ends the guardian. Calling it again is harmless. */
  stop(signal: NodeJS.Signals): Promise<void>
}

export async function openGuard(
  name: string,
  account?: ServiceAccount,
  memoryMb?: number,
): Promise<Guard> {
  const folder = join(tmpdir(), `holdfast-${name}-${randomBytes(6).toString('hex')}`)
  const plan: GuardianPlan = { folder, account, memoryMb }
  const guardian = spawn(
    process.execPath,
    [fileURLToPath(new URL('./guardian.ts', import.meta.url)), JSON.stringify(plan)],
    {
      // A session of its own: Ctrl-C in the terminal must not end the guardian before its work.
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: { ...process.env, NODE_OPTIONS: '' },
    },
  )
  const exited = new Promise<void>((resolve) => {
    guardian.once('exit', () => resolve())
  })
  let endLog: string | undefined
  let pid: number | undefined
  guardian.on('message', (message: Reply) => {
    if (message.kind === 'ended') endLog = message.log
  })
  const { mounted } = await answer(guardian, 'ready')
  // A forgotten server must not keep the test process alive; its guardian cleans up after it.
  guardian.unref()
  guardian.channel?.unref()

  const ask = async <K extends Reply['kind']>(
    request: Request,
    kind: K,
  ): Promise<Extract<Reply, { kind: K }>> => {
    const answered = answer(guardian, kind)
    guardian.channel?.ref()
    guardian.send(request)
    try {
      return await answered
    } finally {
      guardian.channel?.unref()
    }
  }

  let stopping: Promise<void> | undefined
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    guardian.ref()
    if (guardian.connected) guardian.send({ kind: 'stop', signal } satisfies Request)
    await exited
  }

  return {
    folder,
    logFile: join(folder, 'log'),
    inMemory: mounted,
    async run(command) {
      await ask({ kind: 'run', command }, 'ran')
    },
    async serve(command) {
      endLog = undefined
      pid = (await ask({ kind: 'serve', command }, 'serving')).pid
    },
    pid() {
      if (pid === undefined) throw new Error('no server was started')
      return pid
    },
    ended: () => endLog,
    async stop(signal) {
      stopping ??= stop(signal)
      await stopping
    },
  }
}

/** The guardian's next reply, which must be of the kind asked for. */
async function answer<K extends Reply['kind']>(
  guardian: ChildProcess,
  kind: K,
): Promise<Extract<Reply, { kind: K }>> {
  return await new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      guardian.off('message', onMessage)
      guardian.off('exit', onExit)
      guardian.off('error', reject)
      act()
    }
    const onMessage = (message: Reply): void => {
      if (message.kind === kind) settle(() => resolve(message as Extract<Reply, { kind: K }>))
      else if (message.kind === 'failed') settle(() => reject(new Error(message.reason)))
    }
    const onExit = (): void => {
      settle(() => reject(new Error(`the guardian process ended before it was ${kind}`)))
    }
    guardian.on('message', onMessage)
    guardian.on('exit', onExit)
    guardian.on('error', reject)
  })
}
