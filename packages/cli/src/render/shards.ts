import type { ClusterStatus, MoveEntry, MoveProgress } from 'holdfast/shards'
import { bucketText } from '../bucket-list.ts'
import type { Paint } from '../terminal/paint.ts'
import { renderTable } from './table.ts'
import { count, moment } from './words.ts'

/** The primaries, moves that have not ended, and what is wrong. */
export function renderShards(
  { primaries, nobody, several }: ClusterStatus,
  look: { readonly width: number; readonly paint: Paint },
): string[] {
  const open = openMoves({ primaries })
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
    ...(open.length === 0 ? [] : ['', ...open.flatMap(moveLines)]),
    ...(nobody.length === 0
      ? []
      : ['', `Nobody has ${count(nobody.length, 'bucket')}: ${bucketText(nobody)}.`]),
    ...(several.length === 0
      ? []
      : [
          '',
          `At source and target of a move that was decided: ${bucketText(several)}. Resume it.`,
        ]),
  ]
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
  taken: 'the target has the buckets',
  'handed over': 'the source has handed them over',
  refused: 'the target will not take them',
  unmarked: 'the source serves them again',
  closed: 'nothing is kept for it any more',
}
