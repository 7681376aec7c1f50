import { replaceThere } from '@holdfast/testkit'
import { ownFiles, schemaFile } from '../../../../holdfast/src/schema/schema-files.ts'
import type { Weakened } from './ledger-stage.ts'

/** A piece of one of our SQL functions, and what stands there instead. */
interface Cut {
  readonly file: string
  readonly piece: RegExp
  readonly instead: string
}

/** Our schema without some pieces. Fails if one is no longer there: then nothing would be missing. */
function without(cuts: readonly Cut[], later?: string): Weakened {
  const files = ownFiles()
  for (const { file } of cuts) {
    if (!files.repeatables.some(({ name }) => name === file)) throw new Error(`no file ${file}`)
  }
  const repeatables = files.repeatables.map((original) => {
    let { text } = original
    for (const { file, piece, instead } of cuts) {
      if (file === original.name) text = replaceThere(file, text, piece, instead)
    }
    return text === original.text ? original : schemaFile(original.name, text)
  })
  return { files: { ...files, repeatables }, ...(later === undefined ? {} : { later }) }
}

/** The short ways know the rules as well; where `apply` is weakened, all must go through it. */
function throughApply(): Cut[] {
  const short = ['app/apply_one', 'app/apply_debit'].map((file): Cut => {
    const known = ownFiles().repeatables.find(({ name }) => name === file)
    const call = /RETURN apply\([^;]*\);/.exec(known?.text ?? '')?.[0]
    if (call === undefined) throw new Error(`${file} does not go on to apply() any more`)
    return { file, piece: /\nBEGIN\n/g, instead: `\nBEGIN\n${call}\n` }
  })
  return [
    ...short,
    { file: 'app/apply_plain', piece: /\nBEGIN\n/g, instead: "\nBEGIN\nRETURN '';\n" },
    { file: 'app/apply_new', piece: /\nBEGIN\n/g, instead: "\nBEGIN\nRETURN '[0]';\n" },
  ]
}

/** Read, decide, write, and nothing that makes others wait before they have read. */
export function withoutRowLocks(): Weakened {
  const lock = /\bFOR NO KEY UPDATE( OF \w+)?( SKIP LOCKED)?/g
  return without([
    ...throughApply(),
    { file: 'app/apply', piece: lock, instead: '' },
    { file: 'app/set_limit', piece: lock, instead: '' },
    { file: 'app/sweep', piece: lock, instead: '' },
  ])
}

/** Rows are locked in the order of the lines. */
export function withoutOrder(): Weakened {
  return without([
    ...throughApply(),
    {
      file: 'app/apply',
      piece:
        /SELECT DISTINCT x\.bucket, x\.account\s+FROM unnest\(l_bucket, l_account, l_slot\) AS x\(bucket, account, slot\)\s+WHERE x\.slot IS NOT NULL\s+ORDER BY x\.bucket, x\.account/g,
      instead: `SELECT x.bucket, x.account
        FROM unnest(l_bucket, l_account, l_slot) WITH ORDINALITY AS x(bucket, account, slot, ord)
        WHERE x.slot IS NOT NULL ORDER BY x.ord`,
    },
  ])
}

/** Whether an id is known is looked up before the locks, and nothing else keeps it from being used twice. */
export function withoutLateLookup(): Weakened {
  const lookup =
    /\n +l_known := known_ids\(l_ord, home_buckets, buckets, owners, ids, began\);(?=\n +IF expected)/g
  const early = 'l_known := known_ids(l_ord, home_buckets, buckets, owners, ids, began);'
  return without(
    [
      ...throughApply(),
      { file: 'app/apply', piece: lookup, instead: '' },
      { file: 'app/apply', piece: /\n +-- 2\. Missing accounts\./g, instead: `\n${early}\n-- 2.` },
    ],
    'ALTER TABLE holdfast.operation DROP CONSTRAINT operation_pkey',
  )
}

/** Leases are renewed and taken over by whoever looks, without a lock on their row. */
export function withoutLeaseLocks(): Weakened {
  const lock = /\n +FOR (NO KEY )?UPDATE( SKIP LOCKED)?(?=;)/g
  return without([
    { file: 'app/renew_lease', piece: lock, instead: '' },
    { file: 'app/acquire_lease', piece: lock, instead: '' },
  ])
}

/** A guard that looks, and keeps nobody from taking over. */
export function withoutFenceLock(): Weakened {
  return without([{ file: 'app/guard_lease', piece: /\n +FOR KEY SHARE(?=;)/g, instead: '' }])
}

/** Ticks are taken without the lock of their schedule, and nothing else makes them unique. */
export function withoutTickLocks(): Weakened {
  return without(
    [
      {
        file: 'app/claim_tick',
        piece: /\n +FOR NO KEY UPDATE( SKIP LOCKED)?(?=;)/g,
        instead: '',
      },
    ],
    'ALTER TABLE holdfast.tick DROP CONSTRAINT tick_pkey',
  )
}

/** Look, work, remember: nothing makes a key unique. */
export function withoutUniqueKeys(): Weakened {
  return without(
    [
      { file: 'app/begin_once', piece: / {2}IF wait THEN[^]*?END IF;\n/g, instead: '' },
      { file: 'app/store_once', piece: /\n\s*ON CONFLICT[^]*?<= moment(?=;)/g, instead: '' },
    ],
    'ALTER TABLE holdfast.once DROP CONSTRAINT once_pkey',
  )
}
