import { initShards, type MoveOutcome, type PlannedMove } from 'holdfast/shards'
import { bucketsIn, bucketText } from '../bucket-list.ts'
import { type Call, type Command, done, failed, Misuse, unconfirmed, yesFlag } from '../command.ts'
import { numberOf, secondsOf } from '../number-flag.ts'
import { openMoves, progressText, renderShards } from '../render/shards.ts'
import { count } from '../render/words.ts'
import { lookOf } from '../render/look.ts'
import { withMoves, withPrimaries } from '../shards-primaries.ts'

export const shards: Command = {
  name: 'shards',
  about: 'Several primaries: set them up, see where buckets are, move them, make primaries equal',
  needsDatabase: false,
  args: [
    {
      name: 'verb',
      words: ['init', 'status', 'move', 'rebalance'],
      about: 'What to do; status unless told',
      optional: true,
    },
  ],
  flags: {
    buckets: { type: 'string', value: '<list>', about: 'What to move: 7,9,100-120' },
    to: { type: 'string', value: '<name>', about: 'The primary that gets them' },
    tables: {
      type: 'string',
      value: '<list>',
      about: 'Tables of your own to take along: public.orders',
    },
    resume: { type: 'string', value: '<id>', about: 'Bring a move to its end that has stopped' },
    undo: {
      type: 'string',
      value: '<id>',
      about: 'Put back a move that its target has not taken yet',
    },
    drain: {
      type: 'string',
      value: '<name>',
      about: 'rebalance: leave this primary without buckets',
    },
    'at-once': {
      type: 'string',
      value: '<n>',
      about: 'rebalance: buckets in one move; 64 unless told',
    },
    pause: {
      type: 'string',
      value: '<seconds>',
      about: 'How long work in moving buckets may have to wait; 5 unless told',
    },
    wait: {
      type: 'string',
      value: '<seconds>',
      about: 'How long old transactions are waited for before that; 60 unless told',
    },
    yes: yesFlag,
  },
  async run(call) {
    const { verb = 'status' } = call.args
    if (verb === 'init') return await init(call)
    if (verb === 'status') return await status(call)
    return verb === 'move' ? await move(call) : await rebalance(call)
  },
}

async function init(call: Call): Promise<number> {
  return await withPrimaries(call, async (primaries) => {
    const names = Object.keys(primaries)
    if (call.flags['yes'] !== true) return would(call, `make ${names.join(', ')} one cluster`)
    const drivers = Object.fromEntries(
      Object.entries(primaries).map(([name, { driver }]) => [name, driver]),
    )
    const cluster = await initShards(
      drivers,
      call.schema === undefined ? {} : { schema: call.schema },
    )
    call.print({ cluster, primaries: names }, `${names.join(', ')} are one cluster, ${cluster}.\n`)
    return done
  })
}

async function status(call: Call): Promise<number> {
  const { terminal } = call.around
  return await withMoves(call, {}, async (moves) => {
    const found = await moves.status()
    const look = lookOf(terminal)
    call.printPainted(found, `${renderShards(found, look).join('\n')}\n`)
    return found.nobody.length > 0 || openMoves(found).length > 0 ? failed : done
  })
}

async function move(call: Call): Promise<number> {
  const { resume, undo, buckets, to } = call.flags
  const yes = call.flags['yes'] === true
  return await withMoves(call, termsOf(call), async (moves) => {
    if (typeof undo === 'string') {
      if (!yes) return would(call, 'put everything back as it was before that move')
      await moves.undo(undo)
      call.print({ id: undo, undone: true }, 'Everything is as it was before.\n')
      return done
    }
    if (typeof resume === 'string') {
      if (!yes) return would(call, 'bring that move to its end')
      return told(call, [await moves.resume(resume)])
    }
    if (typeof buckets !== 'string' || typeof to !== 'string') {
      throw new Misuse('--buckets and --to are needed to move, or --resume or --undo.')
    }
    const wanted = bucketsIn(buckets)
    if (!yes) return would(call, `move ${count(wanted.length, 'bucket')} to ${to}`)
    return told(call, await moves.move({ buckets: wanted, to, tables: tablesOf(call) }))
  })
}

async function rebalance(call: Call): Promise<number> {
  const drain = call.flags['drain']
  const atOnce = numberOf(call.flags['at-once'], 'at-once')
  return await withMoves(call, termsOf(call), async (moves) => {
    const plan = await moves.planRebalance({
      ...(typeof drain === 'string' ? { drain: [drain] } : {}),
      ...(atOnce === undefined ? {} : { atOnce }),
    })
    if (plan.length === 0) {
      call.print({ plan }, 'Nothing has to move.\n')
      return done
    }
    if (call.flags['yes'] !== true) {
      call.print(
        { plan, done: false },
        `${plan.map(planLine).join('')}Nothing was done: add --yes.\n`,
      )
      return unconfirmed
    }
    const outcomes: MoveOutcome[] = []
    for (const [at, { buckets, to }] of plan.entries()) {
      call.tell(`Move ${at + 1} of ${plan.length}: ${count(buckets.length, 'bucket')} to ${to}`)
      outcomes.push(...(await moves.move({ buckets, to, tables: tablesOf(call) })))
    }
    return told(call, outcomes)
  })
}

function planLine({ from, to, buckets }: PlannedMove): string {
  return `${count(buckets.length, 'bucket')} from ${from} to ${to}: ${bucketText(buckets)}\n`
}

function told(call: Call, moves: readonly MoveOutcome[]): number {
  const lines = moves.map(({ buckets, from, to, moved, pausedMs }) => {
    const paused = pausedMs === undefined ? '' : ` Work in them waited ${Math.round(pausedMs)} ms.`
    const what = `${count(buckets.length, 'bucket')} from ${from} to ${to}`
    return moved ? `Moved ${what}.${paused}\n` : `Undone: ${what}.\n`
  })
  call.print({ moves }, lines.length === 0 ? 'They are there already.\n' : lines.join(''))
  return done
}

function would(call: Call, what: string): number {
  call.print({ done: false, would: what }, `Would ${what}.\nNothing was done: add --yes.\n`)
  return unconfirmed
}

function tablesOf({ flags }: Call): readonly string[] {
  const tables = flags['tables']
  return typeof tables === 'string' ? tables.split(',').map((table) => table.trim()) : []
}

function termsOf({ flags, progress }: Call): Parameters<typeof withMoves>[1] {
  const pause = secondsOf(flags['pause'], 'pause')
  const wait = secondsOf(flags['wait'], 'wait')
  return {
    ...(pause === undefined ? {} : { pause }),
    ...(wait === undefined ? {} : { wait }),
    onProgress: (at) => progress(progressText(at)),
  }
}
