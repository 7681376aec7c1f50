/** Below `packages/holdfast/test/integration`, in the order in which they mostly notice first. */
const models = 'ledger/{model,raw-calls-any,model-concurrent}'
const quotas = 'ledger/{quota,quota-rate,quota-rolling,quota-several-limits,limits}'
const stocks = 'ledger/{stock,stock-place,stock-reservation,stock-race}'
const credit =
  'ledger/{credits-model,credits-model-concurrent,credits,credits-lifecycle,credits-debt,credits-race}'
const calls = 'ledger/{refusals,answers,transfer,coalescing,opening,sweeper,reads,declarations}'
const slower = 'ledger/{replay-edge,quota-holds,hold-races,raw-calls,hostile-input,findings}'
const windows = 'ledger/quota-windows'
const audits = 'ledger/{audit,audit-faces}'
const upkeep = 'ledger/retention'

const ledger = [models, quotas, stocks, credit, calls, slower]

/** Which tests have to notice a change of a file: those of the first pattern that its name matches. */
const table: readonly (readonly [file: RegExp, tests: readonly string[]])[] = [
  [/^app\/apply$/, ledger],
  [/^app\/apply_(one|plain)$/, [models, quotas, stocks, calls, slower]],
  [/forget_(grants|operations|windows)|drop_month|partition|make_month|upkeep/, [upkeep, audits]],
  [/grant|give_back|take_up/, [credit, 'ledger/{raw-calls-any,reads,raw-calls,findings}', audits]],
  [/^app\/(set_limit|peek)$|pinned_allowance|standing/, [quotas, stocks, calls, slower, windows]],
  [/window_|first_moment/, [windows, quotas, calls, 'ledger/findings']],
  [/flows_in|filled_until|retry_at|refusal$/, [models, quotas, calls, slower]],
  [/follow|unread_accounts/, ['ledger/follow', upkeep, 'shards/move']],
  [/read_usage|list_keys|current_window|due_balance|book_due/, ['ledger/reports', credit]],
  [/sweep|fall_due/, ['ledger/sweeper', models, credit, slower, 'ledger/security']],
  [
    /declare_book|is_forgotten_scope|read_books|book_lock|redeclare/,
    ['ledger/declarations', ...ledger],
  ],
  [/read_balance|read_history|read_holds/, ['ledger/reads', ...ledger]],
  [/audit_|check_/, [audits, credit]],
  [
    /lease|next_token|remaining_ms/,
    ['leases/{lease,guard,role,leader}', 'observe/coordination-reports'],
  ],
  [/_tick|schedule|ticks/, ['schedule/{fire,controls,policies,once-per-tick}']],
  [/once/, ['once/{once,http}']],
  [/note_locks|add_buckets|lock_minutes|lock_names/, ['observe/{lock-notes,names,recorder}']],
  [
    /enqueue_work|note_claims|rate_room|-work$/,
    ['claims/{work,rate,unique-scope,scope-family,dead,run-after}'],
  ],
  [
    /shard|move|slot|bucket|here|away|serves|subscri|hand_over|write_end|mark_leaving/,
    ['shards/*'],
  ],
  [
    /locked_lines|account_lockers|holds_session_lock|line_accounts/,
    ['ledger/findings', 'waits/findings'],
  ],
  [/^views\//, ['ledger/{reads,security}', 'observe/*-reports']],
  [/^migrations\/0001/, ['ledger/walls', ...ledger, 'ledger/security', audits]],
  [/^migrations\/0004/, ['schedule/{fire,controls,policies,once-per-tick}']],
  [/./, [...ledger, audits]],
]

/** The test files for an SQL file such as `app/apply.sql`, as patterns below the root of the repository. */
export function testsOf(file: string): string[] {
  const name = file.replace(/\.sql$/, '')
  const [, tests = []] = table.find(([pattern]) => pattern.test(name)) ?? []
  return [...new Set(tests.flatMap(each))].map(
    (test) => `packages/holdfast/test/integration/${test}.test.ts`,
  )
}

/** Each of `folder/{one,other}`, because their order counts. */
function each(tests: string): string[] {
  const [, folder = '', names = ''] = /^(.*){(.*)}$/.exec(tests) ?? []
  return names === '' ? [tests] : names.split(',').map((name) => folder + name)
}
