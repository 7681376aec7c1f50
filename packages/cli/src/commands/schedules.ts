import { HoldfastError } from 'holdfast/errors'
import { createInterventions, type Interventions } from 'holdfast/observe'
import { type Call, type Command, yesFlag } from '../command.ts'
import { renderSchedules } from '../render/reports.ts'
import { lookOf } from '../render/look.ts'
import { done, Misuse, unconfirmed } from '../failure.ts'

export const schedules: Command = {
  name: 'schedules',
  about: 'Schedules: last tick, next, what is late; pause, resume or run one',
  needsDatabase: true,
  args: [
    {
      name: 'verb',
      words: ['list', 'pause', 'resume', 'run'],
      about: 'What to do; default: list',
      optional: true,
    },
    { name: 'name', about: 'Which one, to pause, resume or run', optional: true },
  ],
  flags: { yes: yesFlag },
  async run(call) {
    const { verb = 'list', name } = call.args
    if (verb === 'list') return await list(call)
    if (name === undefined) throw new Misuse(`<name> is needed to ${verb} a schedule.`)
    return await change(call, verb as Verb, name)
  },
}

async function list({ args, around, observe, printPainted }: Call): Promise<number> {
  const { name } = args
  const { terminal } = around
  await observe(async (observer) => {
    const all = await observer.schedules()
    const found = name === undefined ? all : all.filter((each) => each.name === name)
    if (name !== undefined && found.length === 0) throw notKnown(name)
    const look = lookOf(terminal)
    printPainted({ schedules: found }, `${renderSchedules(found, look).join('\n')}\n`)
  })
  return done
}

function notKnown(name: string): HoldfastError {
  return new HoldfastError('OBSERVE_NO_SUCH_SCHEDULE', { about: '', details: { schedule: name } })
}

type Verb = 'pause' | 'resume' | 'run'

interface Change {
  readonly would: string
  apply(interventions: Interventions, name: string): Promise<string>
}

const taken =
  'a process that has called start() of the schedule takes it within a minute, one that calls fire() when it does so next'

const changes: Readonly<Record<Verb, Change>> = {
  pause: {
    would: 'pause it: no process takes ticks of it',
    apply: async (interventions, name) =>
      (await interventions.pauseSchedule(name)) ? 'It is paused.' : 'It was paused already.',
  },
  resume: {
    would: 'let it go on with its next tick',
    apply: async (interventions, name) =>
      (await interventions.resumeSchedule(name))
        ? 'It goes on with its next tick.'
        : 'It was not paused.',
  },
  run: {
    would: `ask for a tick: ${taken}`,
    apply: async (interventions, name) => {
      const at = await interventions.requestTick(name, 'holdfast schedules run')
      return `Asked for the tick ${at.toISOString()}: ${taken}.`
    },
  },
}

async function change(call: Call, verb: Verb, name: string): Promise<number> {
  const { would, apply } = changes[verb]
  return await call.observe(async (observer, driver) => {
    if (call.flags['yes'] !== true) {
      const isKnown = (await observer.schedules()).some((each) => each.name === name)
      if (!isKnown) throw notKnown(name)
      call.print(
        { schedule: name, known: true, done: false },
        `Would ${would}.\nNothing was done: add --yes.\n`,
      )
      return unconfirmed
    }
    const schema = call.schema === undefined ? {} : { schema: call.schema }
    const told = await apply(createInterventions(driver, schema), name)
    call.print({ schedule: name, done: true, told }, `${told}\n`)
    return done
  })
}
