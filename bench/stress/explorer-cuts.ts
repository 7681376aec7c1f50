import type { Cuts } from '../harness/cut-sources.ts'
import { entryNamed } from '../zoo/entries.ts'
import { type Task, taskOf, type Variant } from '../zoo/variants.ts'

export const explorerControls = ['x1', 'x3', 'x4', 'x7'] as const
export type ExplorerControl = (typeof explorerControls)[number]

export function isExplorerControl(name: string): name is ExplorerControl {
  return (explorerControls as readonly string[]).includes(name)
}

/** What is taken away for each control, by file of packages/race/src. Findings of the review, by their ids. */
export const explorerCuts: Readonly<Record<ExplorerControl, Cuts>> = {
  /** Whoever waits for something other than SQL for 25 ms is idle, and serial orders begin all flows at once. */
  x1: {
    'run/play/rest.ts': [
      [/known !== undefined \|\| play\.serial\s*\? hangMs[^]*?: unknownMs/g, 'graceMs'],
    ],
    'run/play/play.ts': [[/else play\.uncontrolled \?\?= idle\.what/g, '']],
    'run/play/schedule.ts': [
      [/if \(!serial\) while \(beginNext\(play\)\)/g, 'while (beginNext(play))'],
    ],
    'search/serial-oracle.ts': [[/\|\| isSerial\(run\)\) return run/g, '|| true) return run']],
  },
  /** Each serial order is run once, so nothing is learnt of chance, not even by how words look; and serial orders are judged. */
  x3: {
    'search/serial-oracle.ts': [
      [/if \(run\.trouble === undefined\) await this\.#learn\(order, run\)/g, ''],
    ],
    'search/search.ts': [[/found === undefined \|\| !isSerial\(run\)/g, 'true']],
    'search/compare/text-parts.ts': [
      [/if \(drawnKey\.test\(text\)\) return true/g, 'if (text) return false'],
    ],
    'search/proof.ts': [
      [/await this\.#oracle\.relearn\(\)/g, ''],
      [/!this\.#comparison\.isDoubtful\(run\)/g, 'true'],
      [/if \(again\.trouble === undefined\) this\.#comparison\.learnDrawn\(run, again\)/g, ''],
      [/this\.#serialToo \|\|= isSerial\(run\)\n\s*return !isSerial\(run\)/g, 'return true'],
    ],
  },
  /** Of several tables of one name the text is believed to mean none of them. */
  x4: {
    'run/statement/names.ts': [
      [/name\.schema === undefined \|\| name\.schema === schema/g, 'schema !== ""'],
      [/if \(!second\) return first/g, 'return second ? undefined : first'],
    ],
  },
  /** An answer with a random value in it is not compared at all, and that costs nothing. */
  x7: {
    'search/compare/comparison.ts': [
      [
        /left\.ends\.forEach\(\(end, flow\) => \{/g,
        'left.ends.forEach((end, flow) => { if (JSON.stringify(end) !== JSON.stringify(right.ends[flow])) this.#unsteady.add(flow);',
      ],
      [/\.\.\.\[\.\.\.this\.#unsteady\]\.map\(.*\),/g, ''],
    ],
  },
}

const plain: Variant = {
  client: 'pg',
  waitMs: 0,
  waitKind: 'timer',
  keys: 'natural',
  clock: 'none',
  schema: 'one',
  cache: 'none',
  place: 'direct',
}

/** The explorations that show it, and which wrong verdict does. */
const led: Readonly<
  Record<
    ExplorerControl,
    readonly [wrong: 'false race' | 'false green', string[], Partial<Variant>]
  >
> = {
  x1: ['false green', ['lost-update', 'oversell', 'coupon-used-twice'], { waitMs: 80 }],
  x3: ['false race', ['opened-then-filed', 'conditional-update'], { keys: 'nanoid' }],
  x4: ['false green', ['opposite-orders'], { schema: 'named' }],
  x7: ['false green', ['token-redeemed-twice', 'coupon-used-twice'], { keys: 'nanoid' }],
}

/** A control that is right in all of these is missed. */
const seedsOfControl = 12

export function ledBy(control: ExplorerControl, seed: number) {
  const [wrong, names, axes] = led[control]
  const tasks = Array.from({ length: seedsOfControl }, (_, round) =>
    names.map(
      (name): Task => ({
        ...taskOf(entryNamed(name), seed + round),
        variant: { ...plain, ...axes },
      }),
    ),
  ).flat()
  return { wrong, tasks }
}
