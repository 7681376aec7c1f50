import {
  initShards,
  type MoveOutcome,
  type MoveProgress,
  type Moves,
  type MovesOptions,
  type PlannedMove,
} from 'holdfast/shards'
import { bucketsIn, bucketText } from '../bucket-list.ts'
import { type Call, type Command, yesFlag } from '../command.ts'
import { numberOf, secondsOf } from '../number-flag.ts'
import {
  isSound,
  openLines,
  openMoves,
  progressText,
  renderShards,
  repairedLines,
  wrongLines,
} from '../render/shards.ts'
import { count } from '../render/words.ts'
import { lookOf } from '../render/look.ts'
import { assertReachable, withMoves, withPrimaries } from '../shards-primaries.ts'
import { done, failed, Misuse, unconfirmed } from '../failure.ts'

export const shards: Command = {
  name: 'shards',
  about:
    'Several primaries: set them up, see where buckets are, move them, make primaries equal, repair them',
  needsDatabase: false,
  args: [
    {
      name: 'verb',
      words: ['init', 'status', 'move', 'rebalance', 'repair'],
      about: 'What to do; default: status',
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
      about: 'rebalance: buckets in one move; default: 64',
    },
    adopt: {
      type: 'boolean',
      about: 'repair: give buckets that nobody has to the primary that had them last, empty',
    },
    without: {
      type: 'string',
      value: '<list>',
      about: 'repair: primaries that are gone, and that the others need not be compared with',
    },
    pause: {
      type: 'string',
      value: '<seconds>',
      about: 'How long work in moving buckets may have to wait; default: 5',
    },
    wait: {
      type: 'string',
      value: '<seconds>',
      about: 'How long old transactions are waited for before that; default: 60',
    },
    yes: yesFlag,
  },
  async run(call) {
    const { verb = 'status' } = call.args
    if (verb === 'init') return await init(call)
    if (verb === 'status') return await status(call)
    if (verb === 'repair') return await repair(call)
    return verb === 'move' ? await move(call) : await rebalance(call)
  },
}

async function init(call: Call): Promise<number> {
  return await withPrimaries(call, async (primaries) => {
    const names = Object.keys(primaries)
    if (call.flags['yes'] !== true) return would(call, `make ${names.join(', ')} one cluster`)
    await assertReachable(primaries)
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
    return isSound(found) && openMoves(found).length === 0 ? done : failed
  })
}

async function repair(call: Call): Promise<number> {
  const { adopt, without, yes } = call.flags
  return await withMoves(call, {}, async (moves) => {
    if (yes !== true) return await wouldRepair(call, moves)
    const repaired = await moves.repair({
      tables: listOf(call.flags['tables']),
      adopt: adopt === true,
      without: listOf(without),
    })
    const { nobody, absent } = await moves.status()
    const lines = repairedLines(repaired, { nobody, absent })
    call.print({ ...repaired, nobody, absent }, `${lines.join('\n')}\n`)
    return nobody.length + absent.length > 0 ? failed : done
  })
}

/** A move that is open is not for a repair, but it is nothing that is right either. */
async function wouldRepair(call: Call, moves: Moves): Promise<number> {
  const status = await moves.status()
  const lines = [...openLines(status), ...wrongLines(status)]
  // What was restored and waits for a primary that is gone does not show.
  const isForRepair = !isSound(status) || call.flags['without'] !== undefined
  const told = lines.length === 0 ? ['Nothing is wrong.'] : lines
  const next = isForRepair ? ['Nothing was done: add --yes.'] : []
  call.print({ status, done: false }, `${[...told, ...next].join('\n')}\n`)
  if (isForRepair) return unconfirmed
  return lines.length === 0 ? done : failed
}

type MoveFlags = Pick<MovesOptions, 'pause' | 'wait'> & {
  readonly onProgress: (at: MoveProgress) => void
}

/** Runs what moves, and tells of a move that it leaves open: somebody has to resume or undo it. */
async function moving(call: Call, run: (moves: Moves) => Promise<number>): Promise<number> {
  const begun = new Set<string>()
  const { onProgress, ...terms } = termsOf(call)
  const heard: typeof onProgress = (at) => {
    begun.add(at.id)
    onProgress(at)
  }
  return await withMoves(call, { ...terms, onProgress: heard }, async (moves) => {
    try {
      return await run(moves)
    } catch (error) {
      // One that cannot be asked now does not hide why it failed.
      const status = await moves.status().catch(() => undefined)
      for (const line of openLines(status ?? { primaries: [] }, begun)) call.tell(line)
      throw error
    }
  })
}

async function move(call: Call): Promise<number> {
  const { resume, undo, buckets, to } = call.flags
  const yes = call.flags['yes'] === true
  return await moving(call, async (moves) => {
    if (typeof undo === 'string') {
      assertId(undo, 'undo')
      if (!yes) return would(call, 'put everything back as it was before that move')
      await moves.undo(undo)
      call.print({ id: undo, undone: true }, 'Everything is as it was before.\n')
      return done
    }
    if (typeof resume === 'string') {
      assertId(resume, 'resume')
      if (!yes) return would(call, 'bring that move to its end')
      return told(call, [await moves.resume(resume)])
    }
    if (typeof buckets !== 'string' || typeof to !== 'string') {
      throw new Misuse('--buckets and --to are needed to move, or --resume or --undo.')
    }
    const wanted = bucketsIn(buckets)
    if (!yes) return wouldMove(call, await moves.planMove({ buckets: wanted, to }))
    return told(call, await moves.move({ buckets: wanted, to, tables: tablesOf(call) }))
  })
}

async function rebalance(call: Call): Promise<number> {
  const drain = call.flags['drain']
  const atOnce = numberOf(call.flags['at-once'], 'at-once')
  return await moving(call, async (moves) => {
    const plan = await moves.planRebalance({
      ...(typeof drain === 'string' ? { drain: [drain] } : {}),
      ...(atOnce === undefined ? {} : { atOnce }),
    })
    if (plan.length === 0) {
      call.print({ plan }, 'Nothing has to move.\n')
      return done
    }
    if (call.flags['yes'] !== true) return wouldMove(call, plan)
    const outcomes: MoveOutcome[] = []
    for (const [at, { buckets, to }] of plan.entries()) {
      call.tell(`Move ${at + 1} of ${plan.length}: ${count(buckets.length, 'bucket')} to ${to}`)
      outcomes.push(...(await moves.move({ buckets, to, tables: tablesOf(call) })))
    }
    return told(call, outcomes)
  })
}

function wouldMove(call: Call, plan: readonly PlannedMove[]): number {
  const lines = plan.length === 0 ? [`${areThere}\n`] : plan.map(planLine)
  if (plan.length === 0) call.print({ plan }, lines.join(''))
  else call.print({ plan, done: false }, `${lines.join('')}Nothing was done: add --yes.\n`)
  return plan.length === 0 ? done : unconfirmed
}

const areThere = 'They are there already.'

function planLine({ from, to, buckets }: PlannedMove): string {
  return `Would move ${count(buckets.length, 'bucket')} from ${from} to ${to}: ${bucketText(buckets)}\n`
}

function told(call: Call, moves: readonly MoveOutcome[]): number {
  const lines = moves.map(({ buckets, from, to, moved, already, pausedMs }) => {
    const paused = pausedMs === undefined ? '' : ` Work in them waited ${Math.round(pausedMs)} ms.`
    const what = `${count(buckets.length, 'bucket')} from ${from} to ${to}`
    if (already) return `That move had ended before: ${moved ? 'moved' : 'undone'} ${what}.\n`
    return moved ? `Moved ${what}.${paused}\n` : `Undone: ${what}.\n`
  })
  call.print({ moves }, lines.length === 0 ? `${areThere}\n` : lines.join(''))
  return done
}

function would(call: Call, what: string): number {
  call.print({ done: false, would: what }, `Would ${what}.\nNothing was done: add --yes.\n`)
  return unconfirmed
}

/** @throws Misuse */
function assertId(id: string, flag: string): void {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) {
    throw new Misuse(
      `--${flag} takes the id of a move: holdfast shards status shows those that are open.`,
    )
  }
}

function tablesOf({ flags }: Call): readonly string[] {
  return listOf(flags['tables'])
}

function listOf(flag: unknown): readonly string[] {
  return typeof flag === 'string' ? flag.split(',').map((each) => each.trim()) : []
}

function termsOf({ flags, progress }: Call): MoveFlags {
  const pause = secondsOf(flags['pause'], 'pause')
  const wait = secondsOf(flags['wait'], 'wait')
  return {
    ...(pause === undefined ? {} : { pause }),
    ...(wait === undefined ? {} : { wait }),
    onProgress: (at) => progress(progressText(at)),
  }
}
