import type { Command } from '../command.ts'
import { noSession, pidOf } from '../number-flag.ts'
import { chainTo, endCommand, renderWhy } from '../render/why.ts'
import { done } from '../failure.ts'

export const why: Command = {
  name: 'why',
  about: 'Why a session waits, from it to the root, and what can be done',
  needsDatabase: true,
  onMysql: true,
  args: [{ name: 'pid', about: 'Process id of the session, as locks shows it' }],
  flags: {},
  async run(call) {
    const pid = pidOf(call.args['pid'])
    return await call.observe(async (observer) => {
      const tree = await observer.locks()
      const known = chainTo(tree, pid)
      const alone = known.length > 0 ? undefined : await observer.session(pid)
      const chain = alone === undefined ? known : [alone]
      const { terminal } = call.around
      if (chain.length === 0) {
        throw noSession(pid)
      }
      const root = chain.at(-1)
      const command =
        root === undefined || root.waiters === 0 || root.pid === 0 ? undefined : endCommand(root)
      const look = { width: Math.min(terminal.size().columns, 120), paint: terminal.paint }
      call.printPainted({ chain, command }, `${renderWhy(tree, chain, look).join('\n')}\n`)
      return done
    })
  },
}
