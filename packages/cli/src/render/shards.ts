import type { ClusterStatus, MoveEntry, MoveProgress, Repaired } from 'holdfast/shards'
import { bucketText } from '../bucket-list.ts'
import type { Paint } from '../terminal/paint.ts'
import { renderTable } from './table.ts'
import { count, moment } from './words.ts'

/** The primaries, moves that have not ended, and what is wrong. */
export function renderShards(
  status: ClusterStatus,
  look: { readonly width: number; readonly paint: Paint },
): string[] {
  const { primaries } = status
  const open = openMoves(status)
  const wrong = wrongLines(status)
  return [
    ...renderTable(
      [
        { title: 'PRIMARY', of: ({ name }) => name },
        { title: 'BUCKETS', of: ({ here }) => String(here), right: true },
        { title: 'LEAVING', of: ({ leaving }) => String(leaving), right: true },
        {
          title: 'OPEN MOVES',
          of: ({ moves }) => String(moves.filter(({ ended }) => !ended).length),
          right: true,
        },
      ],
      primaries,
      look,
    ),
    ...(open.length === 0 ? [] : ['', ...openLines(status)]),
    ...(wrong.length === 0 ? [] : ['', ...wrong]),
  ]
}

/** Every bucket is at one primary, and all of them have answered. */
export function isSound(status: ClusterStatus): boolean {
  return wrongLines(status).length === 0
}

/** What is wrong with primaries and buckets, and what to do about it. */
export function wrongLines(status: ClusterStatus): readonly string[] {
  const { failures, several, stale, strays } = status
  return [
    ...failures.map(({ primary, error }) => `${primary} cannot be asked: ${reasonOf(error)}`),
    ...(several.length === 0
      ? []
      : [`At source and target of a move that was decided: ${bucketText(several)}. Resume it.`]),
    ...stale.map(
      ({ primary, buckets }) =>
        `${primary} came back from before a move: it believes to have ${bucketsOf(buckets)}, ` +
        'and another primary does. It refuses them.\n  holdfast shards repair --yes',
    ),
    ...strays.map(
      ({ primary, buckets }) =>
        `${primary} has rows of ${bucketsOf(buckets)}, which another primary has.\n` +
        '  holdfast shards repair --yes, with --tables if tables of your own go by the bucket',
    ),
    ...homelessLines(status),
  ]
}

/** Buckets that none of these primaries has: what a repair may leave. */
function homelessLines({
  nobody,
  absent,
}: Pick<ClusterStatus, 'nobody' | 'absent'>): readonly string[] {
  return [
    ...absent.map(
      ({ primary, buckets }) =>
        `${primary} has ${bucketsOf(buckets)}, and is not in the configuration.\n` +
        `  Add ${primary} to shards in the configuration file`,
    ),
    ...(nobody.length === 0
      ? []
      : [
          `Nobody has ${bucketsOf(nobody)}: the primary that got them came back from before that.\n` +
            '  holdfast shards repair --adopt --yes gives them back to it, empty',
        ]),
  ]
}

/** What a repair has done. */
export function repairedLines(
  { givenUp, resumed, rows, adopted }: Repaired,
  after: Pick<ClusterStatus, 'nobody' | 'absent'>,
): readonly string[] {
  const did = [
    ...givenUp.map(({ primary, buckets }) => `${primary} has given up ${bucketsOf(buckets)}.`),
    ...resumed.map((id) => `Brought move ${id} to its end.`),
    ...(rows === 0 ? [] : [`Deleted ${count(rows, 'row')} of buckets that others have.`]),
    ...adopted.map(({ primary, buckets }) => `${primary} has ${bucketsOf(buckets)} again, empty.`),
  ]
  const left = homelessLines(after)
  return did.length === 0 && left.length === 0 ? ['Nothing had to be repaired.'] : [...did, ...left]
}

function bucketsOf(buckets: readonly number[]): string {
  return `${count(buckets.length, 'bucket')} (${bucketText(buckets)})`
}

/** A code, and nothing of what a server or a client says: that may have an address in it. */
function reasonOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code
  return typeof code === 'string' ? code : 'it failed'
}

/** Each once, as the source tells it where that is there. */
export function openMoves({ primaries }: Pick<ClusterStatus, 'primaries'>): readonly MoveEntry[] {
  const byId = new Map<string, MoveEntry>()
  for (const { name, moves } of primaries) {
    for (const move of moves) {
      if (!move.ended && (name === move.source || !byId.has(move.id))) byId.set(move.id, move)
    }
  }
  return [...byId.values()]
}

/** The same, or some of them, with what to do about them. */
export function openLines(
  status: Pick<ClusterStatus, 'primaries'>,
  ids?: ReadonlySet<string>,
): readonly string[] {
  return openMoves(status)
    .filter(({ id }) => ids?.has(id) ?? true)
    .flatMap(moveLines)
}

function moveLines({ id, buckets, source, target, step, changedAt }: MoveEntry): string[] {
  return [
    `${id}: ${count(buckets.length, 'bucket')} (${bucketText(buckets)}) from ${source} to ${target}`,
    `  ${step} since ${moment(changedAt)}`,
    `  holdfast shards move --resume ${id} --yes, or --undo`,
  ]
}

/** One line about how far a move is. */
export function progressText({ step, tables, behindBytes, rows, blockers }: MoveProgress): string {
  if (step === 'copying' && tables !== undefined) {
    const behind = behindBytes === undefined ? '' : `, ${Math.round(behindBytes / 1_000)} kB behind`
    return `copying: ${tables[0]} of ${tables[1]} tables${behind}`
  }
  if (step === 'clearing') return `deleting what is no longer needed: ${rows ?? 0} rows`
  if (step === 'waiting') {
    const [first] = blockers ?? []
    return `waiting for ${count(blockers?.length ?? 0, 'old transaction')}, pid ${first?.pid ?? '?'}`
  }
  return words[step] ?? step
}

const words: Partial<Record<MoveProgress['step'], string>> = {
  opened: 'written down at the source',
  expected: 'written down at the target',
  published: 'offered by the source',
  kept: 'the source keeps what changes',
  cleared: 'nothing of it at the target',
  subscribed: 'the target receives',
  copied: 'everything is there but what is written right now',
  marked: 'nothing new is begun at the source',
  quiet: 'nobody is at work in it at the source',
  ended: 'the last row was written',
  arrived: 'the last row has arrived',
  counted: 'both have counted the rows',
  taken: 'the target has the buckets',
  'handed over': 'the source has handed them over',
  refused: 'the target will not take them',
  unmarked: 'the source serves them again',
  closed: 'nothing is kept for it any more',
}
